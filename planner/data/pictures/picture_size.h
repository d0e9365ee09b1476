// What kind of picture a file holds and how large it is, from its first bytes. The name of a file is never asked.
#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace planwright {

enum class PictureFormat { kPng, kJpeg, kWebp };

struct PictureSize {
  PictureFormat format = PictureFormat::kPng;
  int64_t height = 0, width = 0;  // pixels, as they are stored, before the picture is turned (orientation.h)
};

// Larger pictures are refused before any memory is taken. PNG and JPEG come row by row. These come as a whole: an
// interlaced PNG (4 bytes for each pixel), a WebP (up to 8), and a JPEG in several scans, as progressive ones are: its
// coefficients take 2 bytes for each value of its colours, whose grids can be coarser than that of its pixels.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26, kMaxInterlacedPixels = int64_t{1} << 24,
                         kMaxWebpPixels = int64_t{1} << 24, kMaxCoefficientBytes = int64_t{1} << 27;

// The format of a file with these first bytes; 12 are enough. InvalidArgument if it is none of the three.
absl::StatusOr<PictureFormat> ReadPictureFormat(std::string_view start);

// The first bytes of a PNG or WebP file that its size is read from.
inline constexpr int64_t kPngHeaderBytes = 29, kWebpHeaderBytes = 30;

// Bytes [offset, offset + count) of a file, or fewer where it ends.
using ReadBytes = absl::FunctionRef<absl::StatusOr<std::string>(int64_t offset, int64_t count)>;

// The size of a picture. Of a PNG or WebP file its first bytes are read. The size in a JPEG may lie behind segments of
// any length (thumbnails, profiles), which are passed over without being read: `read` is asked for a few kilobytes at
// a time, at ascending offsets. InvalidArgument if the file is no picture, its header is damaged, it is of a kind that
// is not read (animated WebP; JPEG with 12 bits, arithmetic coding or without loss), or too large. Errors of `read`.
absl::StatusOr<PictureSize> ReadPictureSize(ReadBytes read);

// Of a file in memory; of a PNG or WebP its first bytes are enough.
absl::StatusOr<PictureSize> ReadPictureSize(std::string_view file);

}  // namespace planwright
