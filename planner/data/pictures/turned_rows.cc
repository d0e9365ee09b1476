// Pictures that are turned before they are resized, as Pillow's transpose() turns them: then the sums of a resize have
// the order that they have for a picture that was stored so.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "planner/data/pictures/orientation.h"
#include "planner/data/pictures/picture_rows.h"

namespace planwright {
namespace {

// Where rows are columns so many of them are made at a time, so that what is read lies together.
constexpr int64_t kStripRows = 16;

class TurnedRows : public PictureRows {
 public:
  TurnedRows(const PictureSize& size, int orientation, int64_t channels, std::vector<uint8_t> stored)
      : channels_(channels), stored_height_(size.height), stored_width_(size.width),
        height_(RowsAreColumns(orientation) ? size.width : size.height),
        width_(RowsAreColumns(orientation) ? size.height : size.width), orientation_(orientation),
        stored_(std::move(stored)), strip_(kStripRows * width_ * channels) {}

  int64_t channels() const override { return channels_; }

  absl::StatusOr<const uint8_t*> Next() override {
    const int64_t in_strip = next_ % kStripRows;
    if (in_strip == 0) MakeStrip(std::min(kStripRows, height_ - next_));
    ++next_;
    return strip_.data() + in_strip * width_ * channels_;
  }

 private:
  // The stored pixel that stands at row y and column x.
  const uint8_t* Pixel(int64_t y, int64_t x) const {
    const int64_t bottom = stored_height_ - 1, right = stored_width_ - 1;
    switch (orientation_) {
      case 2: return Stored(y, right - x);
      case 3: return Stored(bottom - y, right - x);
      case 4: return Stored(bottom - y, x);
      case 5: return Stored(x, y);
      case 6: return Stored(bottom - x, y);
      case 7: return Stored(bottom - x, right - y);
      case 8: return Stored(x, right - y);
      default: return Stored(y, x);
    }
  }
  const uint8_t* Stored(int64_t y, int64_t x) const { return stored_.data() + (y * stored_width_ + x) * channels_; }

  void MakeStrip(int64_t rows) {
    for (int64_t x = 0; x < width_; ++x) {
      for (int64_t y = 0; y < rows; ++y)
        std::memcpy(strip_.data() + (y * width_ + x) * channels_, Pixel(next_ + y, x), static_cast<size_t>(channels_));
    }
  }

  const int64_t channels_, stored_height_, stored_width_, height_, width_;
  const int orientation_;
  const std::vector<uint8_t> stored_;
  std::vector<uint8_t> strip_;
  int64_t next_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PictureRows>> TurnRows(std::unique_ptr<PictureRows> rows, const PictureSize& size,
                                                      int orientation) {
  const int64_t row_bytes = size.width * rows->channels();
  std::vector<uint8_t> stored(row_bytes * size.height);
  for (int64_t y = 0; y < size.height; ++y) {
    const absl::StatusOr<const uint8_t*> row = rows->Next();
    if (!row.ok()) return row.status();
    std::memcpy(stored.data() + y * row_bytes, *row, static_cast<size_t>(row_bytes));
  }
  if (absl::Status status = rows->Finish(); !status.ok()) return status;
  return std::make_unique<TurnedRows>(size, orientation, rows->channels(), std::move(stored));
}

}  // namespace planwright
