// Sizes from headers: of any file they are what decoding finds, and pictures that are too large are refused by them.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>

#include "planner/data/pictures/decode_picture.h"
#include "planner/data/pictures/patches.h"
#include "tests/data/pictures/golden.h"
#include "tests/data/pictures/jpeg_files.h"

namespace planwright {
namespace {

TEST(PictureSize, OfRandomJpegsIsThatOfTheirPixels) {
  std::mt19937 random(1);
  const auto draw = [&](int most) { return 1 + static_cast<int>(random() % most); };
  for (int i = 0; i < 150; ++i) {
    const JpegSettings settings{.height = draw(90),
                                .width = draw(90),
                                .grey = i % 5 == 0,
                                .across = draw(3),
                                .down = draw(2),
                                .progressive = i % 3 == 0,
                                .restart_rows = i % 7 == 0 ? 1 : 0};
    const std::string file = JpegOf(settings);
    const auto size = ReadPictureSize(file);
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ(size->format, PictureFormat::kJpeg);
    EXPECT_EQ((std::pair{size->height, size->width}), (std::pair<int64_t, int64_t>{settings.height, settings.width}));
    EXPECT_TRUE(CheckPicture(file).ok()) << CheckPicture(file);
  }
}

// A file that says another size, by one bit, never has pixels of that size.
TEST(PictureSize, ThatIsWrongIsFoundByDecoding) {
  const std::string file = JpegOf({.height = 40, .width = 56});
  const size_t frame = file.find("\xff\xc0");
  for (size_t bit = 0; bit < 32; ++bit) {
    std::string other = file;
    other[frame + 5 + bit / 8] ^= static_cast<char>(1 << bit % 8);
    const absl::Status status = CheckPicture(other);
    const auto size = ReadPictureSize(other);
    // The last unit of 8 x 8 pixels stays as long as it is cut at another place.
    const bool same_units = size.ok() && (size->height + 7) / 8 == 5 && (size->width + 7) / 8 == 7;
    EXPECT_EQ(status.ok(), same_units) << bit << status;
  }
}

// Segments of 65,533 bytes before the frame are passed over.
TEST(PictureSize, BehindLongSegmentsIsReadByFewBytes) {
  const std::string jpeg = GoldenPicture("420.jpg");
  std::string file = jpeg.substr(0, 2);
  for (int i = 0; i < 30; ++i) file += "\xff\xe2\xff\xff" + std::string(65533, '\xff');
  file += jpeg.substr(2);
  int64_t bytes = 0, last = -1;
  const auto size = ReadPictureSize([&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    EXPECT_GT(offset, last - 1);
    last = offset;
    bytes += count;
    return file.substr(offset, count);
  });
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ((std::pair{size->height, size->width}), (std::pair<int64_t, int64_t>{29, 37}));
  EXPECT_LT(bytes, 200000);
  EXPECT_TRUE(CheckPicture(file).ok()) << CheckPicture(file);

  const auto failed = ReadPictureSize([&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    if (offset > 1000000) return absl::UnavailableError("the disk is gone");
    return file.substr(offset, count);
  });
  EXPECT_EQ(failed.status(), absl::UnavailableError("the disk is gone"));
}

// PNG and WebP need their first bytes only.
TEST(PictureSize, OfPngAndWebpIsInTheirFirstBytes) {
  int files = 0;
  for (const auto& [name, golden] : ReadGoldenPixels()) {
    const bool webp = name.ends_with(".webp");
    if (!webp && !name.ends_with(".png")) continue;
    const auto size = ReadPictureSize(GoldenPicture(name).substr(0, webp ? kWebpHeaderBytes : kPngHeaderBytes));
    ASSERT_TRUE(size.ok()) << size.status();
    EXPECT_EQ((std::pair{size->height, size->width}), (std::pair{golden.height, golden.width})) << name;
    EXPECT_EQ(size->format, webp ? PictureFormat::kWebp : PictureFormat::kPng);
    ++files;
  }
  EXPECT_EQ(files, 30);
}

// Whatever is changed in a file: all functions say the same, and no damage ends in anything but a status.
TEST(PictureSize, OfDamagedFilesIsThatOfTheirPixelsOrRefused) {
  std::mt19937 random(2);
  int fine = 0, broken = 0;
  for (const auto& [name, golden] : ReadGoldenPixels()) {
    const std::string whole = GoldenPicture(name);
    for (int i = 0; i < 60; ++i) {
      std::string file = whole;
      for (unsigned change = random() % 3; change-- > 0;) file[random() % file.size()] = static_cast<char>(random());
      if (i % 4 == 0) file.resize(random() % file.size());
      const auto size = ReadPictureSize(file);
      // The pixels of a large size take long.
      if (size.ok() && size->height * size->width > 100000) continue;
      const absl::Status checked = CheckPicture(file);
      EXPECT_EQ(checked, DecodePicture<Bicubic>(file, 6, 5).status()) << name << i;
      EXPECT_TRUE(size.ok() || size.status() == checked) << name << i << size.status() << checked;
      EXPECT_TRUE(checked.ok() || checked.code() == absl::StatusCode::kInvalidArgument) << checked;
      ++(checked.ok() ? fine : broken);
    }
  }
  EXPECT_GT(fine, 300);
  EXPECT_GT(broken, 800);
}

int64_t PeakKilobytes() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

// 17 million pixels.
TEST(PictureMemory, OfALargeJpegIsThatOfAFewRows) {
  const std::string file = JpegOf({.height = 16384, .width = 1024, .flat = true});
  const int64_t before = PeakKilobytes();
  const auto pixels = DecodePicture<Bicubic>(file, 32, 32);
  ASSERT_TRUE(pixels.ok()) << pixels.status();
  EXPECT_LT(PeakKilobytes() - before, 20000);
}

TEST(PictureMemory, BombsAreRefusedByTheirHeaders) {
  const auto with_sides = [](const std::string& name, size_t offset, const std::string& sides) {
    std::string file = GoldenPicture(name);
    return file.replace(offset, sides.size(), sides);
  };
  const auto frame = [&](const std::string& name, unsigned char code, const std::string& sides) {
    return with_sides(name, GoldenPicture(name).find(std::string("\xff") + static_cast<char>(code)) + 5, sides);
  };
  const std::string most("\xff\xdc\xff\xdc", 4);  // 65500 by 65500
  std::string interlaced = GoldenPicture("rgb.png");
  interlaced.replace(16, 8, std::string("\0\0\x10\1\0\0\x10\0", 8));
  interlaced[28] = 1;
  const std::pair<std::string, std::string> cases[] = {
      {with_sides("rgb.png", 16, std::string("\0\0\x20\1\0\0\x20\0", 8)),
       "the PNG says 8193 by 8192 pixels; 1 to 67108864 are read"},
      {with_sides("rgb.png", 16, std::string(8, '\xff')),
       "the PNG says 4294967295 by 4294967295 pixels; 1 to 67108864 are read"},
      {interlaced, "the interlaced PNG says 4097 by 4096 pixels; 1 to 16777216 are read"},
      {frame("444.jpg", 0xc0, most), "the JPEG says 65500 by 65500 pixels; 1 to 67108864 are read"},
      {frame("444.jpg", 0xc0, std::string("\xff\xdd\0\1", 4)),
       "JPEG: it says 1 by 65501 pixels; no side may be above 65500"},
      {frame("progressive_444.jpg", 0xc2, std::string("\x20\0\x20\0", 4)),
       "the JPEG of 8192 by 8192 pixels is in several scans, as progressive ones are, and takes 402653184 bytes of "
       "memory; at most 134217728 are taken"},
      {frame("several_scans.jpg", 0xc0, std::string("\x20\0\x20\0", 4)),
       "the JPEG of 8192 by 8192 pixels is in several scans, as progressive ones are, and takes 201326592 bytes of "
       "memory; at most 134217728 are taken"},
      {with_sides("lossy.webp", 26, std::string("\xff\x3f\xff\x3f", 4)),
       "the WebP says 16383 by 16383 pixels; 1 to 16777216 are read"},
      {with_sides("lossless.webp", 21, std::string("\xff\xff\xff\x0f", 4)),
       "the WebP says 16384 by 16384 pixels; 1 to 16777216 are read"},
      {with_sides("extended.webp", 24, std::string(6, '\xff')),
       "the WebP says 16777216 by 16777216 pixels; 1 to 16777216 are read"}};
  const int64_t before = PeakKilobytes();
  for (const auto& [file, message] : cases) {
    EXPECT_EQ(ReadPictureSize(file).status().message(), message);
    EXPECT_EQ(CheckPicture(file).message(), message);
    EXPECT_EQ(DecodePicture<Bilinear>(file, 8, 8).status().message(), message);
  }
  EXPECT_LT(PeakKilobytes() - before, 5000);
}

// Each scan is a pass over all coefficients, and can be next to nothing in the file.
TEST(PictureMemory, SoAreThoseOfTooManyScans) {
  const std::string jpeg = GoldenPicture("several_scans.jpg");
  const size_t last = jpeg.rfind("\xff\xda"), end = jpeg.rfind("\xff\xd9");
  const auto repeated = [&](int times) {
    std::string file = jpeg.substr(0, last);
    for (int i = 0; i < times; ++i) file += jpeg.substr(last, end - last);
    return file + jpeg.substr(end);
  };
  EXPECT_TRUE(CheckPicture(repeated(499)).ok()) << CheckPicture(repeated(499));
  EXPECT_EQ(CheckPicture(repeated(500)), absl::InvalidArgumentError("JPEG: it has more than 500 scans"));
}

}  // namespace
}  // namespace planwright
