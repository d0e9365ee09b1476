#include "planner/data/pictures/png_orientation.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "planner/data/pictures/exif.h"
#include "planner/data/pictures/picture_end.h"

namespace planwright {
namespace {

constexpr int64_t kMostText = 1 << 20;  // of a longer one, and of what it holds, the first bytes are looked at

std::string Inflated(std::string_view text) {
  std::string made(kMostText, '\0');
  z_stream stream = {};
  if (inflateInit(&stream) != Z_OK) return "";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(made.data());
  stream.avail_out = static_cast<uInt>(made.size());
  inflate(&stream, Z_SYNC_FLUSH);  // of a damaged one it gives what comes before the damage
  made.resize(made.size() - stream.avail_out);
  inflateEnd(&stream);
  return made;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// ImageMagick's form of EXIF: an empty line, the kind, the number of bytes, and their hex digits on several lines.
std::string BytesOfProfile(const std::string& text) {
  size_t at = text.find('\n');
  for (int line = 0; line < 2 && at != std::string::npos; ++line) at = text.find('\n', at + 1);
  std::string bytes;
  int high = -1;
  for (; at < text.size(); ++at) {
    const int digit = HexDigit(text[at]);
    if (digit < 0) continue;
    if (high >= 0) bytes += static_cast<char>(high << 4 | digit);
    high = high >= 0 ? -1 : digit;
  }
  return bytes;
}

// Walks the chunks: length, name, contents and a checksum each.
class PngChunks {
 public:
  PngChunks(ReadBytes read, int64_t bytes, bool whole) : read_(read), bytes_(bytes), behind_pixels_(whole) {}

  absl::StatusOr<int> Orientation() {
    constexpr int64_t kAround = 12;
    for (int64_t at = 8; at + kAround <= bytes_;) {
      const absl::StatusOr<std::string> head = read_(at, 8);
      if (!head.ok()) return head.status();
      if (head->size() < 8) break;
      const int64_t length = BytesAsNumber(*head, 0, 4, true);
      const std::string name = head->substr(4);
      if (name == "IEND" || length > bytes_ - at - kAround) break;
      if (name == "IDAT" && !behind_pixels_) {
        if (absl::Status status = LookAtEnd(); !status.ok()) return status;
        if (!behind_pixels_) break;
      }
      if (absl::Status status = Take(name, at + 8, length); !status.ok()) return status;
      at += length + kAround;
    }
    absl::StatusOr<std::optional<int64_t>> found = OrientationOfExif(read_, exif_);
    if (!found.ok()) return found.status();
    if (exif_.begin == 0 && !profile_.empty()) {
      const auto of_profile = [this](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
        return profile_.substr(std::min<size_t>(offset, profile_.size()), count);
      };
      found = OrientationOfExif(of_profile, {0, static_cast<int64_t>(profile_.size())});
    }
    return OrientationOr1(*found ? *found : OrientationOfXmp(xmp_));
  }

 private:
  // Whether other chunks than pixels come behind them.
  absl::Status LookAtEnd() {
    const int64_t count = std::min(kPictureEnd, bytes_);
    const absl::StatusOr<std::string> end = read_(bytes_ - count, count);
    if (!end.ok()) return end.status();
    for (const char* name : {"eXIf", "tEXt", "zTXt", "iTXt"})
      behind_pixels_ = behind_pixels_ || end->find(name) != std::string::npos;
    return absl::OkStatus();
  }

  absl::Status Take(const std::string& name, int64_t begin, int64_t length) {
    constexpr std::string_view kProfile("Raw profile type exif\0", 22), kXmp("XML:com.adobe.xmp\0", 18);
    if (name == "eXIf") exif_ = {begin, length};
    if (name != "tEXt" && name != "zTXt" && name != "iTXt") return absl::OkStatus();
    const std::string_view keyword = name == "iTXt" ? kXmp : kProfile;
    absl::StatusOr<std::string> text = read_(begin, std::min<int64_t>(length, keyword.size()));
    if (!text.ok()) return text.status();
    if (*text != keyword) return absl::OkStatus();
    text = read_(begin, std::min(length, kMostText));
    if (!text.ok()) return text.status();
    std::string_view rest = std::string_view(*text).substr(keyword.size());
    bool packed = name == "zTXt";
    if (name == "iTXt") {
      // Whether it is compressed, how, and two texts.
      packed = !rest.empty() && rest[0] == '\1';
      const size_t language = rest.find('\0', 2);
      const size_t translated = language == rest.npos ? rest.npos : rest.find('\0', language + 1);
      if (translated == rest.npos) return absl::OkStatus();
      rest.remove_prefix(translated + 1);
    } else if (packed) {
      rest.remove_prefix(std::min<size_t>(1, rest.size()));  // how it is compressed
    }
    std::string contents = packed ? Inflated(rest) : std::string(rest);
    if (name == "iTXt")
      xmp_ = std::move(contents);
    else
      profile_ = BytesOfProfile(contents);
    return absl::OkStatus();
  }

  const ReadBytes read_;
  const int64_t bytes_;
  bool behind_pixels_;
  FileStretch exif_;
  std::string profile_, xmp_;
};

}  // namespace

absl::StatusOr<int> OrientationOfPng(ReadBytes read, int64_t bytes, bool whole) {
  return PngChunks(read, bytes, whole).Orientation();
}

}  // namespace planwright
