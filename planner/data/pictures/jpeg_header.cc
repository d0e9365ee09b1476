#include "planner/data/pictures/jpeg_header.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <vector>

namespace planwright {
namespace {

constexpr int64_t kAtATime = 4096;   // bytes of the file that are read
constexpr int64_t kMaxSide = 65500;  // pixels; libjpeg has this limit

absl::Status BadJpeg(const std::string& what) { return absl::InvalidArgumentError(absl::StrCat("JPEG: ", what)); }

// A file that is read forwards, in pieces.
class Bytes {
 public:
  explicit Bytes(ReadBytes read) : read_(read) {}
  int64_t offset() const { return offset_; }

  // The next `count` bytes, at most kAtATime; they stay until the next call.
  absl::StatusOr<std::string_view> Next(int64_t count) {
    if (offset_ < begin_ || offset_ + count > begin_ + static_cast<int64_t>(piece_.size())) {
      absl::StatusOr<std::string> piece = read_(offset_, kAtATime);
      if (!piece.ok()) return piece.status();
      if (static_cast<int64_t>(piece->size()) < count) return BadJpeg("the file ends too early");
      piece_ = *std::move(piece);
      begin_ = offset_;
    }
    const std::string_view next = std::string_view(piece_).substr(offset_ - begin_, count);
    offset_ += count;
    return next;
  }

  void Skip(int64_t count) { offset_ += count; }

 private:
  const ReadBytes read_;
  std::string piece_;  // of the file, from begin_ on
  int64_t begin_ = 0, offset_ = 0;
};

int64_t At(std::string_view bytes, size_t offset) { return static_cast<unsigned char>(bytes[offset]); }
int64_t TwoAt(std::string_view bytes, size_t offset) { return At(bytes, offset) << 8 | At(bytes, offset + 1); }

// The code of the next marker: 0xff, which may be repeated, and the code.
absl::StatusOr<int64_t> NextMarker(Bytes& bytes) {
  const int64_t offset = bytes.offset();
  auto byte = bytes.Next(1);
  if (byte.ok() && At(*byte, 0) != 0xff)
    return BadJpeg(absl::StrFormat("there is no marker at byte %d, but %#04x", offset, At(*byte, 0)));
  while (byte.ok() && At(*byte, 0) == 0xff) byte = bytes.Next(1);
  if (!byte.ok()) return byte.status();
  return At(*byte, 0);
}

bool IsFrame(int64_t marker) {
  constexpr int64_t kHuffmanTables = 0xc4, kReserved = 0xc8, kArithmeticTables = 0xcc;
  return marker >= 0xc0 && marker <= 0xcf && marker != kHuffmanTables && marker != kReserved &&
         marker != kArithmeticTables;
}

// A frame's header (SOF): precision, height, width, and of each colour the name, how fine its grid is, and its table.
absl::StatusOr<JpegHeader> ReadFrame(int64_t marker, std::string_view frame) {
  if (marker == 0xc9 || marker == 0xca) return BadJpeg("it has arithmetic coding; only Huffman coding is read");
  if (marker > 0xc2)
    return BadJpeg(absl::StrFormat("it is lossless or hierarchical (marker %#x), which is not read", marker));
  if (frame.size() < 6) return BadJpeg("the header of its frame is too short");
  const int64_t bits = At(frame, 0), colors = At(frame, 5);
  if (bits != 8) return BadJpeg(absl::StrCat("its values have ", bits, " bits; only 8 are read"));
  JpegHeader header{TwoAt(frame, 1), TwoAt(frame, 3), marker == 0xc2, 0, {}, {}};
  if (header.height == 0 && header.width > 0) return BadJpeg("its height stands behind its pixels, which is not read");
  if (colors != 1 && colors != 3 && colors != 4)
    return BadJpeg(absl::StrCat("it has ", colors, " colors; 1, 3 or 4 are read"));
  if (static_cast<int64_t>(frame.size()) != 6 + 3 * colors)
    return BadJpeg("the header of its frame has a wrong length");
  if (header.height > kMaxSide || header.width > kMaxSide)
    return BadJpeg(
        absl::StrCat("it says ", header.width, " by ", header.height, " pixels; no side may be above ", kMaxSide));
  // Colours whose grids are n by m times as fine as the coarsest have n m blocks of 8 x 8 in each unit.
  int64_t across = 1, down = 1, blocks = 0;
  for (int64_t color = 0; color < colors; ++color) {
    const int64_t fine = At(frame, 7 + 3 * color), n = fine >> 4, m = fine & 15;
    if (n < 1 || n > 4 || m < 1 || m > 4)
      return BadJpeg(absl::StrCat("a color is sampled ", n, " by ", m, " times; 1 to 4 are allowed"));
    across = std::max(across, n);
    down = std::max(down, m);
    blocks += n * m;
  }
  const auto units = [](int64_t pixels, int64_t blocks) { return (pixels + 8 * blocks - 1) / (8 * blocks); };
  header.coefficient_bytes = units(header.width, across) * units(header.height, down) * blocks * 64 * 2;
  return header;
}

}  // namespace

absl::StatusOr<JpegHeader> ReadJpegHeader(ReadBytes read) {
  constexpr int64_t kTemporary = 0x01, kFirstRestart = 0xd0, kStart = 0xd8, kEnd = 0xd9, kScan = 0xda, kApp1 = 0xe1;
  constexpr std::string_view kExif("Exif\0\0", 6), kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  Bytes bytes(read);
  bytes.Skip(2);  // the start, by which the file is known
  JpegHeader header;
  FileStretch exif, xmp;
  int64_t colors = 0;
  while (true) {
    const absl::StatusOr<int64_t> marker = NextMarker(bytes);
    if (!marker.ok()) return marker.status();
    if (*marker == kTemporary || (*marker >= kFirstRestart && *marker < kStart)) continue;  // no contents
    if (*marker == kStart) return BadJpeg("it begins twice");
    if (*marker == kEnd || (*marker == kScan && colors == 0)) return BadJpeg("there is no picture in it");
    const auto length = bytes.Next(2);
    if (!length.ok()) return length.status();
    const int64_t contents = TwoAt(*length, 0) - 2;
    if (contents < 0) return BadJpeg("a segment is shorter than its own length");
    if (*marker == kScan) {
      const auto scanned = bytes.Next(1);
      if (!scanned.ok()) return scanned.status();
      header.several_scans |= At(*scanned, 0) != colors;
      header.exif = exif;
      header.xmp = xmp;
      return header;
    }
    if (!IsFrame(*marker)) {
      int64_t seen = 0;
      if (*marker == kApp1) {
        const auto name = bytes.Next(std::min<int64_t>(contents, kXmp.size()));
        if (!name.ok()) return name.status();
        seen = static_cast<int64_t>(name->size());
        const FileStretch segment{bytes.offset() - seen, contents};
        if (name->starts_with(kExif) && exif.bytes == 0) exif = segment;
        if (*name == kXmp) xmp = segment;
      }
      bytes.Skip(contents - seen);
      continue;
    }
    if (colors != 0) return BadJpeg("it has two frames");
    const auto frame = bytes.Next(std::min<int64_t>(contents, kAtATime));
    if (!frame.ok()) return frame.status();
    const absl::StatusOr<JpegHeader> read_frame = ReadFrame(*marker, *frame);
    if (!read_frame.ok()) return read_frame.status();
    header = *read_frame;
    colors = At(*frame, 5);
  }
}

}  // namespace planwright
