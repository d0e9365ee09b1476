#include "planner/data/pictures/patch_picture.h"

#include <absl/strings/str_cat.h>
#include <png.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace planwright {
namespace {

constexpr size_t kTextAt = 8 + 12 + 13;  // behind the signature and the chunk IHDR

// A number of four bytes, the highest one first.
std::string FourBytes(uint64_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xff);
  return bytes;
}

// The chunk tEXt that says which program wrote the file, as PNG has it.
std::string OwnText() {
  const std::string text = absl::StrCat("Software", std::string(1, '\0'), "plan data trace"), chunk = "tEXt" + text;
  const uLong check = crc32(0, reinterpret_cast<const Bytef*>(chunk.data()), static_cast<uInt>(chunk.size()));
  return FourBytes(text.size()) + chunk + FourBytes(check);
}

}  // namespace

absl::StatusOr<std::string> PngOfPatches(const Image& image, int64_t patch, const PixelNorm& norm) {
  const int64_t height = image.rows * patch, width = image.cols * patch;
  std::vector<uint8_t> pixels(static_cast<size_t>(height * width * 3));
  size_t next = 0;
  for (int64_t i = 0; i < image.rows * image.cols; ++i) {
    const int64_t top = i / image.cols * patch, left = i % image.cols * patch;
    for (int64_t c = 0; c < 3; ++c) {
      for (int64_t y = top; y < top + patch; ++y) {
        for (int64_t x = left; x < left + patch; ++x) {
          const double value = (image.patches[next++] * norm.deviation[c] + norm.mean[c]) * 255;
          pixels[(y * width + x) * 3 + c] = static_cast<uint8_t>(std::lround(std::clamp(value, 0.0, 255.0)));
        }
      }
    }
  }
  png_image written;
  std::memset(&written, 0, sizeof written);
  written.version = PNG_IMAGE_VERSION;
  written.width = static_cast<png_uint_32>(width);
  written.height = static_cast<png_uint_32>(height);
  written.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = 0;
  std::string file;
  if (png_image_write_to_memory(&written, nullptr, &bytes, 0, pixels.data(), 0, nullptr) == 0)
    return absl::InternalError(absl::StrCat("no PNG of ", width, " by ", height, " pixels: ", written.message));
  file.resize(bytes);
  if (png_image_write_to_memory(&written, file.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0)
    return absl::InternalError(absl::StrCat("no PNG of ", width, " by ", height, " pixels: ", written.message));
  file.resize(bytes);
  file.insert(kTextAt, OwnText());
  return file;
}

bool IsPngOfPatches(std::string_view head) {
  return head.size() > kTextAt && head.substr(kTextAt).starts_with(OwnText());
}

}  // namespace planwright
