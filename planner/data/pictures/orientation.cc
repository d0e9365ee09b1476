#include "planner/data/pictures/orientation.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>

#include "planner/data/pictures/exif.h"
#include "planner/data/pictures/jpeg_header.h"
#include "planner/data/pictures/picture_end.h"
#include "planner/data/pictures/png_orientation.h"

namespace planwright {
namespace {

constexpr int64_t kMostXmp = 1 << 20;  // of a longer one the first bytes are looked at

// EXIF decides, if it says anything.
absl::StatusOr<int> OrientationOfBoth(ReadBytes read, FileStretch exif, FileStretch xmp) {
  absl::StatusOr<std::optional<int64_t>> found = OrientationOfExif(read, exif);
  if (found.ok() && !*found && xmp.bytes > 0) {
    const absl::StatusOr<std::string> text = read(xmp.begin, std::min(xmp.bytes, kMostXmp));
    if (!text.ok()) return text.status();
    found = OrientationOfXmp(*text);
  }
  if (!found.ok()) return found.status();
  return OrientationOr1(*found);
}

// The chunks of a WebP file behind its first one, which says whether there are such.
absl::StatusOr<int> OrientationOfWebp(ReadBytes read, int64_t bytes) {
  constexpr int kHasExif = 8, kHasXmp = 4;
  const absl::StatusOr<std::string> start = read(0, kWebpHeaderBytes);
  if (!start.ok()) return start.status();
  if (start->size() < kWebpHeaderBytes || start->substr(12, 4) != "VP8X") return 1;
  const int flags = (*start)[20];
  if ((flags & (kHasExif | kHasXmp)) == 0) return 1;
  FileStretch exif, xmp;
  const int64_t end = std::min(bytes, BytesAsNumber(*start, 4, 4, false) + 8);
  for (int64_t at = 12; at + 8 <= end;) {
    const absl::StatusOr<std::string> head = read(at, 8);
    if (!head.ok()) return head.status();
    if (head->size() < 8) break;
    const int64_t length = BytesAsNumber(*head, 4, 4, false);
    const FileStretch contents{at + 8, std::min(length, end - at - 8)};
    if (head->starts_with("EXIF") && (flags & kHasExif) != 0 && exif.begin == 0) exif = contents;
    if (head->starts_with("XMP ") && (flags & kHasXmp) != 0 && xmp.begin == 0) xmp = contents;
    at += 8 + length + length % 2;
  }
  return OrientationOfBoth(read, exif, xmp);
}

absl::StatusOr<int> OrientationOfJpeg(ReadBytes read) {
  const absl::StatusOr<JpegHeader> header = ReadJpegHeader(read);
  if (!header.ok()) return header.status();
  return OrientationOfBoth(read, header->exif, header->xmp);
}

}  // namespace

absl::StatusOr<int> ReadOrientation(PictureFormat format, ReadBytes read, int64_t bytes, bool whole) {
  switch (format) {
    case PictureFormat::kPng: return OrientationOfPng(read, bytes, whole);
    case PictureFormat::kJpeg: return OrientationOfJpeg(read);
    case PictureFormat::kWebp: return OrientationOfWebp(read, bytes);
  }
  return absl::InternalError("no such format");
}

absl::Status CompareOrientation(PictureFormat format, std::string_view file, int found) {
  const auto read = [file](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    return std::string(offset < static_cast<int64_t>(file.size()) ? file.substr(offset, count) : "");
  };
  const absl::StatusOr<int> all = ReadOrientation(format, read, static_cast<int64_t>(file.size()), true);
  if (!all.ok() || *all == found) return all.status();
  return absl::InvalidArgumentError(
      absl::StrCat("its orientation ", *all, " stands behind its pixels, more than ", kPictureEnd,
                   " bytes before the end of the file, where it is not looked for: write it before the pixels"));
}

}  // namespace planwright
