#include "planner/data/pictures/decode_picture.h"

#include <memory>
#include <utility>
#include <vector>

#include "planner/data/pictures/orientation.h"
#include "planner/data/pictures/picture_rows.h"

namespace planwright {
namespace {

void OverWhiteExactly(const uint8_t* rgba, int64_t width, double* row) {
  for (int64_t x = 0; x < width; ++x) {
    const double alpha = rgba[4 * x + 3] / 255.0;
    for (int64_t c = 0; c < 3; ++c) row[3 * x + c] = alpha * rgba[4 * x + c] + (1 - alpha) * 255;
  }
}

// As Pillow mixes: rounded to the nearest of 256 values. Ties cannot be, as 255 is odd.
template <typename Number>
void OverWhite(const uint8_t* rgba, int64_t width, Number* row) {
  for (int64_t x = 0; x < width; ++x) {
    const int alpha = rgba[4 * x + 3];
    for (int64_t c = 0; c < 3; ++c)
      row[3 * x + c] = static_cast<Number>((alpha * rgba[4 * x + c] + (255 - alpha) * 255 + 127) / 255);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<PictureRows>> OpenPictureRows(std::string_view file, const PictureSize& size) {
  switch (size.format) {
    case PictureFormat::kPng: return OpenPngRows(file, size);
    case PictureFormat::kJpeg: return OpenJpegRows(file, size);
    case PictureFormat::kWebp: return OpenWebpRows(file, size);
  }
  return absl::InternalError("no such format");
}

template <typename Filter>
absl::Status DecodePictureRows(std::string_view file, int64_t height, int64_t width,
                               typename Resizer<Filter>::TakeRow take, int orientation) {
  absl::StatusOr<PictureSize> size = ReadPictureSize(file);
  if (!size.ok()) return size.status();
  auto rows = OpenPictureRows(file, *size);
  if (rows.ok() && IsTurned(orientation)) {
    rows = TurnRows(*std::move(rows), *size, orientation);
    if (RowsAreColumns(orientation)) std::swap(size->height, size->width);
  }
  if (!rows.ok()) return rows.status();
  Resizer<Filter> resizer(size->height, size->width, height, width, std::move(take));
  std::vector<typename Filter::Number> row((*rows)->channels() == 4 ? 3 * size->width : 0);
  for (int64_t y = 0; y < size->height; ++y) {
    const absl::StatusOr<const uint8_t*> decoded = (*rows)->Next();
    if (!decoded.ok()) return decoded.status();
    if ((*rows)->channels() == 4) {
      if constexpr (Filter::kMixesBytes) {
        OverWhite(*decoded, size->width, row.data());
      } else {
        OverWhiteExactly(*decoded, size->width, row.data());
      }
      resizer.Add(row.data());
    } else {
      resizer.Add(*decoded);
    }
  }
  return (*rows)->Finish();
}

template <typename Filter>
absl::StatusOr<Pixels<Filter>> DecodePicture(std::string_view file, int64_t height, int64_t width, int orientation) {
  using Number = typename Filter::Number;
  Pixels<Filter> pixels{height, width, {}};
  pixels.values.reserve(height * width * 3);
  const absl::Status status = DecodePictureRows<Filter>(
      file, height, width, [&](const Number* row) { pixels.values.insert(pixels.values.end(), row, row + width * 3); },
      orientation);
  if (!status.ok()) return status;
  return pixels;
}

template absl::Status DecodePictureRows<Bilinear>(std::string_view, int64_t, int64_t, Resizer<Bilinear>::TakeRow, int);
template absl::Status DecodePictureRows<Bicubic>(std::string_view, int64_t, int64_t, Resizer<Bicubic>::TakeRow, int);
template absl::Status DecodePictureRows<BicubicBytes>(std::string_view, int64_t, int64_t,
                                                      Resizer<BicubicBytes>::TakeRow, int);
template absl::Status DecodePictureRows<BilinearBytes>(std::string_view, int64_t, int64_t,
                                                       Resizer<BilinearBytes>::TakeRow, int);
template absl::StatusOr<Pixels<Bilinear>> DecodePicture(std::string_view, int64_t, int64_t, int);
template absl::StatusOr<Pixels<Bicubic>> DecodePicture(std::string_view, int64_t, int64_t, int);

absl::Status CheckPicture(std::string_view file) {
  const absl::StatusOr<PictureSize> size = ReadPictureSize(file);
  if (!size.ok()) return size.status();
  const auto rows = OpenPictureRows(file, *size);
  if (!rows.ok()) return rows.status();
  for (int64_t y = 0; y < size->height; ++y) {
    if (const auto row = (*rows)->Next(); !row.ok()) return row.status();
  }
  return (*rows)->Finish();
}

}  // namespace planwright
