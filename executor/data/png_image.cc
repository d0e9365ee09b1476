#include <absl/strings/str_cat.h>
#include <png.h>

#include <cstring>

#include "executor/data/images.h"

namespace planwright::executor {
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
  // Divided, not multiplied: the product of two 32-bit numbers from a file can overflow later sums.
  if (size.height < 1 || size.width < 1 || size.height > kMaxPngPixels / size.width) {
    return absl::InvalidArgumentError(
        absl::StrCat("the PNG says ", size.width, " by ", size.height, " pixels; 1 to ", kMaxPngPixels, " are read"));
  }
  return size;
}

absl::StatusOr<Pixels> DecodePng(const std::string& file) {
  const absl::StatusOr<PngSize> size = ReadPngSize(file);
  if (!size.ok()) return size.status();
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  // libpng keeps its message in `image`, so it is copied before that is freed.
  const auto failed = [&image] {
    const std::string message = image.message;
    png_image_free(&image);
    return absl::InvalidArgumentError(absl::StrCat("PNG: ", message));
  };
  if (!png_image_begin_read_from_memory(&image, file.data(), file.size())) return failed();
  // libpng converts every kind of PNG (grey, palette, 16 bits) to this one.
  image.format = PNG_FORMAT_RGBA;
  std::vector<uint8_t> decoded(PNG_IMAGE_SIZE(image));
  if (!png_image_finish_read(&image, nullptr, decoded.data(), 0, nullptr)) return failed();
  Pixels pixels{size->height, size->width, std::vector<double>(size->height * size->width * 3)};
  for (int64_t pixel = 0; pixel < size->height * size->width; ++pixel) {
    const double alpha = decoded[4 * pixel + 3] / 255.0;
    for (int64_t c = 0; c < 3; ++c) pixels.values[3 * pixel + c] = alpha * decoded[4 * pixel + c] + (1 - alpha) * 255;
  }
  return pixels;
}

}  // namespace planwright::executor
