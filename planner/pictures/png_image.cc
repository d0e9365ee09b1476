#include <absl/strings/str_cat.h>
#include <png.h>

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "planner/pictures/images.h"

namespace planwright {
namespace {

int64_t BigEndian(const std::string& bytes, size_t offset) {
  int64_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

}  // namespace

absl::StatusOr<PngSize> ReadPngSize(const std::string& header) {
  // Signature, then the first chunk, which must be a header (IHDR) of 13 bytes: width and height follow.
  const std::string start("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  if (header.size() < kPngHeaderBytes || header.compare(0, start.size(), start) != 0)
    return absl::InvalidArgumentError("not a PNG file");
  const PngSize size{BigEndian(header, 20), BigEndian(header, 16)};
  const bool interlaced = header[28] != 0;
  const int64_t most = interlaced ? kMaxInterlacedPixels : kMaxPngPixels;
  // Divided, not multiplied: the product of two 32-bit numbers from a file can overflow later sums.
  if (size.height < 1 || size.width < 1 || size.height > most / size.width) {
    return absl::InvalidArgumentError(absl::StrCat("the ", interlaced ? "interlaced " : "", "PNG says ", size.width,
                                                   " by ", size.height, " pixels; 1 to ", most, " are read"));
  }
  return size;
}

namespace {

// libpng's state. It ends what fails by longjmp(): each function with setjmp() below holds nothing that needs a
// destructor, and calls nothing of ours.
struct PngReader {
  explicit PngReader(const std::string& file) : rest(file) {
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

// Reads all before the pixels, and has every kind of PNG (grey, palette, 16 bits) converted to rows of RGBA, 8 bits
// each. `srgb`: values become those of sRGB, as libpng's simplified interface makes them: of a file that does not say
// what its values are, those with 16 bits are taken for linear light. Else values stay, less the low byte of 16 bits.
bool BeginRows(PngReader& reader, bool srgb) {
  png_structp png = reader.png;
  if (png == nullptr || reader.info == nullptr) return false;
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  png_set_benign_errors(png, 1);
  png_set_read_fn(png, &reader, TakeBytes);
  png_read_info(png, reader.info);
  const int color = png_get_color_type(png, reader.info);
  const bool deep = png_get_bit_depth(png, reader.info) == 16;
  const bool alpha = (color & PNG_COLOR_MASK_ALPHA) != 0 || png_get_valid(png, reader.info, PNG_INFO_tRNS) != 0;
  png_set_expand(png);
  if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png);
  if (srgb) png_set_alpha_mode_fixed(png, PNG_ALPHA_PNG, deep ? PNG_GAMMA_LINEAR : PNG_DEFAULT_sRGB);
  if (deep && srgb) png_set_scale_16(png);
  if (deep && !srgb) png_set_strip_16(png);
  if (!alpha) png_set_add_alpha(png, 255, PNG_FILLER_AFTER);
  if (srgb) png_set_alpha_mode_fixed(png, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
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

void OverWhite(const uint8_t* rgba, int64_t width, double* row) {
  for (int64_t x = 0; x < width; ++x) {
    const double alpha = rgba[4 * x + 3] / 255.0;
    for (int64_t c = 0; c < 3; ++c) row[3 * x + c] = alpha * rgba[4 * x + c] + (1 - alpha) * 255;
  }
}

// As Pillow mixes: rounded to the nearest of 256 values. Ties cannot be, as 255 is odd.
void OverWhite(const uint8_t* rgba, int64_t width, float* row) {
  for (int64_t x = 0; x < width; ++x) {
    const int alpha = rgba[4 * x + 3];
    for (int64_t c = 0; c < 3; ++c)
      row[3 * x + c] = static_cast<float>((alpha * rgba[4 * x + c] + (255 - alpha) * 255 + 127) / 255);
  }
}

}  // namespace

template <typename Filter>
absl::StatusOr<Pixels<Filter>> DecodePng(const std::string& file, int64_t height, int64_t width) {
  const absl::StatusOr<PngSize> size = ReadPngSize(file);
  if (!size.ok()) return size.status();
  PngReader reader(file);
  const auto failed = [&reader] { return absl::InvalidArgumentError(absl::StrCat("PNG: ", reader.error)); };
  if (!BeginRows(reader, /*srgb=*/std::is_same_v<Filter, Bilinear>)) return failed();
  const bool interlaced = png_get_interlace_type(reader.png, reader.info) != PNG_INTERLACE_NONE;
  const int64_t row_bytes = 4 * size->width;
  if (static_cast<int64_t>(png_get_rowbytes(reader.png, reader.info)) != row_bytes)
    return absl::InvalidArgumentError("PNG: its rows are of another size than it says");
  std::vector<uint8_t> decoded(interlaced ? row_bytes * size->height : row_bytes);
  if (interlaced) {
    std::vector<uint8_t*> rows;
    for (int64_t y = 0; y < size->height; ++y) rows.push_back(decoded.data() + y * row_bytes);
    if (!ReadInterlaced(reader, rows.data())) return failed();
  }
  Resizer<Filter> resizer(size->height, size->width, height, width);
  std::vector<typename Filter::Number> row(3 * size->width);
  for (int64_t y = 0; y < size->height; ++y) {
    if (!interlaced && !ReadRow(reader, decoded.data())) return failed();
    OverWhite(decoded.data() + (interlaced ? y * row_bytes : 0), size->width, row.data());
    resizer.Add(row.data());
  }
  return resizer.Take();
}

template absl::StatusOr<Pixels<Bilinear>> DecodePng<Bilinear>(const std::string&, int64_t, int64_t);
template absl::StatusOr<Pixels<Bicubic>> DecodePng<Bicubic>(const std::string&, int64_t, int64_t);

}  // namespace planwright
