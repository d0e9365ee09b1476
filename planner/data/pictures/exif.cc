#include "planner/data/pictures/exif.h"

#include <algorithm>
#include <string>

namespace planwright {
namespace {

constexpr int64_t kEntryBytes = 12;

absl::StatusOr<std::string> ReadWithin(ReadBytes read, FileStretch within, int64_t offset, int64_t count) {
  if (offset > within.bytes) return std::string();
  return read(within.begin + offset, std::min(count, within.bytes - offset));
}

// What an entry of TIFF says: tag, type, count, and the value or where it stands. Nothing: no orientation.
absl::StatusOr<std::optional<int64_t>> OrientationOfEntry(ReadBytes read, FileStretch exif, std::string_view entry,
                                                          bool big) {
  constexpr int64_t kOrientation = 274;
  if (BytesAsNumber(entry, 0, 2, big) != kOrientation) return std::nullopt;
  // A short or a long number, with or without a sign.
  const int64_t type = BytesAsNumber(entry, 2, 2, big), count = BytesAsNumber(entry, 4, 4, big);
  const int64_t size = type == 3 || type == 8 ? 2 : type == 4 || type == 9 ? 4 : 0;
  if (size == 0 || count == 0) return std::nullopt;
  const absl::StatusOr<std::string> value = size * count <= 4
                                                ? std::string(entry.substr(8, 4))
                                                : ReadWithin(read, exif, BytesAsNumber(entry, 8, 4, big), size);
  if (!value.ok()) return value.status();
  if (static_cast<int64_t>(value->size()) < size) return std::nullopt;
  return BytesAsNumber(*value, 0, size, big);
}

}  // namespace

int64_t BytesAsNumber(std::string_view bytes, size_t offset, size_t count, bool big_endian) {
  int64_t value = 0;
  for (size_t i = 0; i < count; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[offset + (big_endian ? i : count - 1 - i)]);
  return value;
}

absl::StatusOr<std::optional<int64_t>> OrientationOfExif(ReadBytes read, FileStretch exif) {
  constexpr std::string_view kPrefix("Exif\0\0", 6);
  absl::StatusOr<std::string> head = ReadWithin(read, exif, 0, 2 * kPrefix.size() + 8);
  if (!head.ok()) return head.status();
  for (int times = 0; times < 2 && head->starts_with(kPrefix); ++times) {
    head->erase(0, kPrefix.size());
    exif.begin += kPrefix.size();
    exif.bytes -= kPrefix.size();
  }
  const bool big = head->starts_with("MM");
  if (head->size() < 8 || (!big && !head->starts_with("II"))) return std::nullopt;
  int64_t at = BytesAsNumber(*head, 4, 4, big);
  std::optional<int64_t> found;
  const absl::StatusOr<std::string> number = ReadWithin(read, exif, at, 2);
  if (!number.ok()) return number.status();
  int64_t left = number->size() < 2 ? 0 : BytesAsNumber(*number, 0, 2, big);
  at += 2;
  while (left > 0) {
    const absl::StatusOr<std::string> entries = ReadWithin(read, exif, at, std::min<int64_t>(left, 32) * kEntryBytes);
    if (!entries.ok()) return entries.status();
    const int64_t whole = static_cast<int64_t>(entries->size()) / kEntryBytes;
    if (whole == 0) break;
    for (int64_t i = 0; i < whole; ++i) {
      const std::string_view entry = std::string_view(*entries).substr(i * kEntryBytes, kEntryBytes);
      const absl::StatusOr<std::optional<int64_t>> orientation = OrientationOfEntry(read, exif, entry, big);
      if (!orientation.ok()) return orientation.status();
      if (*orientation) found = *orientation;
    }
    at += whole * kEntryBytes;
    left -= whole;
  }
  return found;
}

std::optional<int64_t> OrientationOfXmp(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (size_t at = xmp.find(kName); at != std::string_view::npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with(">")) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return std::nullopt;
}

}  // namespace planwright
