// Headers of PNG, WebP and JPEG files (the PNG and WebP specifications; ITU T.81, annex B).
#include "planner/data/pictures/picture_size.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <vector>

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

// The header of a JPEG file, from its first marker to its first scan.
struct JpegHeader {
  int64_t height = 0, width = 0;  // pixels
  // The picture is whole only behind its last scan, so all coefficients are held until then: so many bytes.
  bool several_scans = false;
  int64_t coefficient_bytes = 0;
};

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
  JpegHeader header{TwoAt(frame, 1), TwoAt(frame, 3), marker == 0xc2, 0};
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

// Walks the markers up to the first scan. InvalidArgument if a marker is damaged, the file ends before, or it is of a
// kind that is not read.
absl::StatusOr<JpegHeader> ReadJpegHeader(ReadBytes read) {
  constexpr int64_t kTemporary = 0x01, kFirstRestart = 0xd0, kStart = 0xd8, kEnd = 0xd9, kScan = 0xda;
  Bytes bytes(read);
  bytes.Skip(2);  // the start, by which the file is known
  JpegHeader header;
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
      return header;
    }
    if (!IsFrame(*marker)) {
      bytes.Skip(contents);
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
