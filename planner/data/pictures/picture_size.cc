// Headers of PNG, WebP and JPEG files (the PNG and WebP specifications; ITU T.81, annex B).
#include "planner/data/pictures/picture_size.h"

#include <absl/strings/str_cat.h>

#include "planner/base/text/stand_in.h"
#include "planner/data/pictures/jpeg_header.h"

namespace planwright {
namespace {

int64_t BigEndian(std::string_view bytes, size_t offset, size_t count) {
  int64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

int64_t LittleEndian(std::string_view bytes, size_t offset, size_t count) {
  int64_t value = 0;
  for (size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

// Divided, not multiplied: the product of two 32-bit numbers from a file can overflow later sums.
absl::StatusOr<PictureSize> Within(int64_t most, const char* kind, const PictureSize& size) {
  if (size.height >= 1 && size.width >= 1 && size.height <= most / size.width) return size;
  return absl::InvalidArgumentError(
      absl::StrCat("the ", kind, " says ", size.width, " by ", size.height, " pixels; 1 to ", most, " are read"));
}

absl::StatusOr<PictureSize> PngSize(std::string_view start) {
  // Behind the signature the first chunk, which must be a header (IHDR) of 13 bytes: width and height follow.
  constexpr std::string_view kHeader("\0\0\0\rIHDR", 8);
  if (start.size() < kPngHeaderBytes || start.substr(8, kHeader.size()) != kHeader)
    return absl::InvalidArgumentError("not a PNG file");
  const bool interlaced = start[28] != 0;
  return Within(interlaced ? kMaxInterlacedPixels : kMaxPixels, interlaced ? "interlaced PNG" : "PNG",
                {PictureFormat::kPng, BigEndian(start, 20, 4), BigEndian(start, 16, 4)});
}

absl::StatusOr<PictureSize> WebpSize(std::string_view start) {
  if (start.size() < kWebpHeaderBytes) return absl::InvalidArgumentError("WebP: the file ends too early");
  // The first chunk: its name and its length, then what it holds.
  const std::string_view name = start.substr(12, 4);
  PictureSize size{PictureFormat::kWebp, 0, 0};
  if (name == "VP8X") {
    constexpr int kAnimated = 2;
    if ((start[20] & kAnimated) != 0)
      return absl::InvalidArgumentError("the WebP is animated; only pictures that stand still are read");
    size.width = 1 + LittleEndian(start, 24, 3);
    size.height = 1 + LittleEndian(start, 27, 3);
  } else if (name == "VP8L" && start[20] == 0x2f) {
    const int64_t bits = LittleEndian(start, 21, 4);
    size.width = 1 + (bits & 0x3fff);
    size.height = 1 + (bits >> 14 & 0x3fff);
  } else if (name == "VP8 " && (start[20] & 1) == 0 && start.substr(23, 3) == "\x9d\x01\x2a") {
    size.width = LittleEndian(start, 26, 2) & 0x3fff;
    size.height = LittleEndian(start, 28, 2) & 0x3fff;
  } else {
    return absl::InvalidArgumentError("WebP: it does not begin with a picture (VP8, VP8L or VP8X)");
  }
  return Within(kMaxWebpPixels, "WebP", size);
}

absl::StatusOr<PictureSize> JpegSize(ReadBytes read) {
  const absl::StatusOr<JpegHeader> header = ReadJpegHeader(read);
  if (!header.ok()) return header.status();
  const auto size = Within(kMaxPixels, "JPEG", {PictureFormat::kJpeg, header->height, header->width});
  if (size.ok() && header->several_scans && header->coefficient_bytes > kMaxCoefficientBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the JPEG of ", size->width, " by ", size->height, " pixels is in several scans, as progressive ones are, and ",
        "takes ", header->coefficient_bytes, " bytes of memory; at most ", kMaxCoefficientBytes, " are taken"));
  }
  return size;
}

}  // namespace

absl::StatusOr<PictureFormat> ReadPictureFormat(std::string_view start) {
  if (start.substr(0, 8) == "\x89PNG\r\n\x1a\n") return PictureFormat::kPng;
  if (start.substr(0, 3) == "\xff\xd8\xff") return PictureFormat::kJpeg;
  if (start.size() >= 12 && start.substr(0, 4) == "RIFF" && start.substr(8, 4) == "WEBP") return PictureFormat::kWebp;
  if (const std::string other = StandInFor(start); !other.empty()) return absl::InvalidArgumentError(other);
  return absl::InvalidArgumentError("neither a PNG, nor a JPEG, nor a WebP file");
}

absl::StatusOr<PictureSize> ReadPictureSize(ReadBytes read) {
  const absl::StatusOr<std::string> start = read(0, kWebpHeaderBytes);
  if (!start.ok()) return start.status();
  const absl::StatusOr<PictureFormat> format = ReadPictureFormat(*start);
  if (!format.ok()) return format.status();
  switch (*format) {
    case PictureFormat::kPng: return PngSize(*start);
    case PictureFormat::kJpeg: return JpegSize(read);
    case PictureFormat::kWebp: return WebpSize(*start);
  }
  return absl::InternalError("no such format");
}

absl::StatusOr<PictureSize> ReadPictureSize(std::string_view file) {
  return ReadPictureSize([file](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    return std::string(offset < static_cast<int64_t>(file.size()) ? file.substr(offset, count) : "");
  });
}

}  // namespace planwright
