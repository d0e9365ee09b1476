// Files that are damaged, or of a kind that is not read: each is refused in words.
#include <gtest/gtest.h>

#include <functional>

#include "planner/data/pictures/decode_picture.h"
#include "tests/data/pictures/golden.h"

namespace planwright {
namespace {

// `file` with `bytes` in place of what is at `offset`.
std::string With(std::string file, size_t offset, const std::string& bytes) {
  return file.replace(offset, bytes.size(), bytes);
}

// The place of a segment's marker in a JPEG file.
size_t Marker(const std::string& file, unsigned char code) { return file.find(std::string("\xff") + char(code)); }

// `file` with other bytes in its frame's header: from `offset` behind the marker on.
std::string WithFrame(const std::string& file, size_t offset, const std::string& bytes) {
  return With(file, Marker(file, 0xc0) + 2 + offset, bytes);
}

std::string Without(std::string file, size_t offset, size_t count) { return file.erase(offset, count); }

std::string Cut(const std::string& file, double part) {
  return file.substr(0, static_cast<size_t>(part * static_cast<double>(file.size())));
}

// What is said of a file. All functions say the same, but for the size, whose reader sees the header alone.
std::string Refusal(const std::string& file) {
  const absl::Status checked = CheckPicture(file);
  EXPECT_EQ(checked, DecodePicture<Bicubic>(file, 8, 8).status());
  EXPECT_EQ(checked, DecodePicture<Bilinear>(file, 8, 8).status());
  const absl::Status size = ReadPictureSize(file).status();
  EXPECT_TRUE(size.ok() || size == checked) << size << checked;
  EXPECT_EQ(checked.code(), absl::StatusCode::kInvalidArgument);
  return std::string(checked.message());
}

TEST(DamagedPicture, IsRefusedInWords) {
  const std::string jpeg = GoldenPicture("444.jpg"), progressive = GoldenPicture("progressive_444.jpg");
  const std::string restarts = GoldenPicture("restarts.jpg"), cmyk = GoldenPicture("cmyk.jpg");
  const std::string png = GoldenPicture("rgb.png"), rgba = GoldenPicture("rgba.png");
  const std::string webp = GoldenPicture("lossy.webp"), lossless = GoldenPicture("lossless.webp"),
                    extended = GoldenPicture("extended.webp");
  const std::string early = "the file ends too early";
  const std::string neither = "neither a PNG, nor a JPEG, nor a WebP file";
  const size_t scan = Marker(jpeg, 0xda);
  const std::pair<std::string, std::string> cases[] = {
      {"", neither},
      {"GIF89a and more", neither},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 49\n",
       "a pointer of Git LFS, not the file: `git lfs pull` in its folder fetches it"},
      {"<!doctype html><title>Sign in</title>",
       "a page of HTML, not the file: what a server answered in its place; download it again"},
      {"\xff\xd8", neither},
      {std::string(5000, '\0'), neither},
      // JPEG: the header
      {jpeg.substr(0, 3), "JPEG: " + early},
      {jpeg.substr(0, Marker(jpeg, 0xc0) + 5), "JPEG: " + early},
      {jpeg.substr(0, scan + 3), "JPEG: " + early},
      {jpeg.substr(0, 20) + "???" + jpeg.substr(20), "JPEG: there is no marker at byte 20, but 0x3f"},
      {jpeg.substr(0, 2) + jpeg, "JPEG: it begins twice"},
      {jpeg.substr(0, 20) + "\xff\xd9", "JPEG: there is no picture in it"},
      {jpeg.substr(0, 20) + jpeg.substr(scan), "JPEG: there is no picture in it"},
      {With(jpeg, 4, std::string("\0\1", 2)), "JPEG: a segment is shorter than its own length"},
      {WithFrame(jpeg, 2, "\x0c"), "JPEG: its values have 12 bits; only 8 are read"},
      {WithFrame(jpeg, 3, std::string("\0\0", 2)), "JPEG: its height stands behind its pixels, which is not read"},
      {WithFrame(jpeg, 5, std::string("\0\0", 2)), "the JPEG says 0 by 29 pixels; 1 to 67108864 are read"},
      {WithFrame(jpeg, 7, "\2"), "JPEG: it has 2 colors; 1, 3 or 4 are read"},
      {WithFrame(jpeg, 7, "\1"), "JPEG: the header of its frame has a wrong length"},
      {WithFrame(jpeg, 9, "\x51"), "JPEG: a color is sampled 5 by 1 times; 1 to 4 are allowed"},
      {jpeg.substr(0, scan) + jpeg.substr(Marker(jpeg, 0xc0)), "JPEG: it has two frames"},
      {With(jpeg, Marker(jpeg, 0xc0) + 1, "\xc3"),
       "JPEG: it is lossless or hierarchical (marker 0xc3), which is not read"},
      {GoldenPicture("arithmetic.jpg"), "JPEG: it has arithmetic coding; only Huffman coding is read"},
      // JPEG: the pixels
      {Cut(jpeg, 0.9), "JPEG: " + early},
      {Cut(progressive, 0.7), "JPEG: " + early},
      {Cut(cmyk, 0.6), "JPEG: " + early},
      {jpeg.substr(0, jpeg.size() - 2), "JPEG: " + early},
      {With(jpeg, jpeg.size() - 300, std::string(100, '\xfe')),
       "JPEG: its data are damaged: 45 extraneous bytes before marker 0xd9"},
      {jpeg.substr(0, jpeg.size() - 2) + std::string(40, 'a') + "\xff\xd9",
       "JPEG: its data are damaged: 33 extraneous bytes before marker 0xd9"},
      {Without(jpeg, Marker(jpeg, 0xdb), 69), "JPEG: Quantization table 0x00 was not defined"},
      {WithFrame(jpeg, 4, "\x10"), "JPEG: its data are damaged: 589 extraneous bytes before marker 0xd9"},
      {WithFrame(jpeg, 4, "\x40"), "JPEG: its data are damaged: premature end of data segment"},
      {With(restarts, restarts.find("\xff\xd1") + 1, "\xd5"),
       "JPEG: its data are damaged: found marker 0xd5 instead of RST1"},
      {With(progressive, progressive.rfind("\xff\xda") + 2 + 2 + 1 + 2 + 2, "\x33"),
       "JPEG: Invalid progressive parameters Ss=1 Se=63 Ah=3 Al=3"},
      {With(jpeg, Marker(jpeg, 0xc4) + 5, std::string(16, '\7')), "JPEG: Bogus Huffman table definition"},
      // PNG
      {png.substr(0, 8) + "other bytes, and more of them", "not a PNG file"},
      {png.substr(0, 20), "not a PNG file"},
      {With(png, 16, std::string(4, '\0')), "the PNG says 0 by 29 pixels; 1 to 67108864 are read"},
      {With(png, 19, "\x26"), "PNG: IHDR: CRC error"},
      {With(rgba, 24, "\3"), "PNG: IHDR: CRC error"},
      {Cut(png, 0.5), "PNG: " + early},
      {With(png, png.size() - 100, "damaged"), "PNG: IDAT: CRC error"},
      // WebP
      {webp.substr(0, 25), "WebP: " + early},
      {Cut(webp, 0.9), "WebP: " + early},
      {With(webp, 12, "JUNK"), "WebP: it does not begin with a picture (VP8, VP8L or VP8X)"},
      {With(webp, 23, "abc"), "WebP: it does not begin with a picture (VP8, VP8L or VP8X)"},
      {With(webp, 26, std::string("\0\0", 2)), "the WebP says 0 by 29 pixels; 1 to 16777216 are read"},
      {With(lossless, 40, std::string(200, '\x5a')), "WebP: its data are damaged"},
      {With(webp, 16, std::string("\xff\xff\0\0", 4)), "WebP: its data are damaged"},
      {With(extended, 24, "\x30"), "WebP: its data are damaged"},
      {GoldenPicture("animated.webp"), "the WebP is animated; only pictures that stand still are read"},
  };
  for (const auto& [file, message] : cases) EXPECT_EQ(Refusal(file), message);
}

}  // namespace
}  // namespace planwright
