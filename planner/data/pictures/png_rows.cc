// PNG files by libpng.
#include <absl/strings/str_cat.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include "planner/data/pictures/picture_rows.h"

namespace planwright {
namespace {

// libpng's state. It ends what fails by longjmp(): each function with setjmp() below holds nothing that needs a
// destructor, and calls nothing of ours.
struct PngReader {
  explicit PngReader(std::string_view file) : rest(file) {
    png = png_create_read_struct(
        PNG_LIBPNG_VER_STRING, this,
        [](png_structp png, png_const_charp message) {
          std::snprintf(static_cast<PngReader*>(png_get_error_ptr(png))->error, sizeof error, "%s", message);
          png_longjmp(png, 1);
        },
        [](png_structp, png_const_charp) {});
    if (png != nullptr) info = png_create_info_struct(png);
  }
  PngReader(const PngReader&) = delete;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string_view rest;  // of the file
  char error[160] = "there is no memory for it";
};

void TakeBytes(png_structp png, png_bytep to, size_t count) {
  std::string_view& rest = static_cast<PngReader*>(png_get_io_ptr(png))->rest;
  if (count > rest.size()) png_error(png, "the file ends too early");
  std::memcpy(to, rest.data(), count);
  rest.remove_prefix(count);
}

// Reads all before the pixels, and has every kind of PNG (grey, palette, 16 bits) converted to rows of RGB or RGBA, 8
// bits each, as they are stored: of 16 bits the high eight. What a file says of its gamma is not used, as Pillow does:
// libpng's simplified interface would take 16 bits that say nothing for linear light.
bool BeginRows(PngReader& reader) {
  png_structp png = reader.png;
  if (png == nullptr || reader.info == nullptr) return false;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_benign_errors(png, 1);
  png_set_read_fn(png, &reader, TakeBytes);
  png_read_info(png, reader.info);
  png_set_expand(png);
  if ((png_get_color_type(png, reader.info) & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  png_set_strip_16(png);
  png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  return true;
}

bool ReadRow(PngReader& reader, uint8_t* row) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_row(reader.png, row, nullptr);
  return true;
}

bool ReadInterlaced(PngReader& reader, uint8_t** rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  png_read_image(reader.png, rows);
  return true;
}

class PngRows : public PictureRows {
 public:
  explicit PngRows(std::string_view file) : reader_(file) {}

  absl::Status Open(const PictureSize& size) {
    if (!BeginRows(reader_)) return Failed();
    channels_ = png_get_channels(reader_.png, reader_.info);
    const int64_t row_bytes = channels_ * size.width;
    if ((channels_ != 3 && channels_ != 4) ||
        static_cast<int64_t>(png_get_rowbytes(reader_.png, reader_.info)) != row_bytes)
      return absl::InvalidArgumentError("PNG: its rows are of another size than it says");
    const bool interlaced = png_get_interlace_type(reader_.png, reader_.info) != PNG_INTERLACE_NONE;
    decoded_.resize(interlaced ? row_bytes * size.height : row_bytes);
    if (!interlaced) return absl::OkStatus();
    std::vector<uint8_t*> rows;
    for (int64_t y = 0; y < size.height; ++y) rows.push_back(decoded_.data() + y * row_bytes);
    if (!ReadInterlaced(reader_, rows.data())) return Failed();
    whole_ = decoded_.data();
    step_ = row_bytes;
    return absl::OkStatus();
  }

  int64_t channels() const override { return channels_; }

  absl::StatusOr<const uint8_t*> Next() override {
    if (whole_ != nullptr) {
      const uint8_t* row = whole_;
      whole_ += step_;
      return row;
    }
    if (!ReadRow(reader_, decoded_.data())) return Failed();
    return decoded_.data();
  }

 private:
  absl::Status Failed() const { return absl::InvalidArgumentError(absl::StrCat("PNG: ", reader_.error)); }

  PngReader reader_;
  int64_t channels_ = 0;
  std::vector<uint8_t> decoded_;    // a row, or the whole interlaced picture
  const uint8_t* whole_ = nullptr;  // the next row of an interlaced picture
  int64_t step_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PictureRows>> OpenPngRows(std::string_view file, const PictureSize& size) {
  auto rows = std::make_unique<PngRows>(file);
  if (absl::Status status = rows->Open(size); !status.ok()) return status;
  return rows;
}

}  // namespace planwright
