// How pictures are to be turned, and their pixels then, beside Pillow's ImageOps.exif_transpose, as
// tests/golden/pictures/make.py stored them.
#include "planner/data/pictures/orientation.h"

#include <gtest/gtest.h>

#include "planner/data/pictures/decode_picture.h"
#include "tests/data/pictures/golden.h"

namespace planwright {
namespace {

const std::string kTurned = "turned/";

std::map<std::string, int> GoldenOrientations() {
  const Golden golden(kPictures + "turned.safetensors");
  const std::string ending = ".orientation";
  std::map<std::string, int> orientations;
  for (const auto& [name, stored] : golden.tensors()) {
    if (!name.ends_with(ending)) continue;
    orientations[name.substr(0, name.size() - ending.size())] = static_cast<int>(golden.Read<int64_t>(name)[0]);
  }
  return orientations;
}

absl::StatusOr<int> OrientationOf(const std::string& file, bool whole, int64_t* bytes = nullptr) {
  const auto read = [&](int64_t offset, int64_t count) -> absl::StatusOr<std::string> {
    if (bytes != nullptr) *bytes += std::min<int64_t>(count, static_cast<int64_t>(file.size()) - offset);
    return offset < static_cast<int64_t>(file.size()) ? file.substr(offset, count) : "";
  };
  return ReadOrientation(ReadPictureFormat(file).value(), read, static_cast<int64_t>(file.size()), whole);
}

TEST(Orientation, IsThatOfPillow) {
  const auto orientations = GoldenOrientations();
  EXPECT_EQ(orientations.size(), 30u);
  for (const auto& [name, orientation] : orientations) {
    const std::string file = GoldenPicture(kTurned + name);
    EXPECT_EQ(OrientationOf(file, true).value(), orientation) << name;
    const bool far = name == "far_behind.png";
    EXPECT_EQ(OrientationOf(file, false).value(), far ? 1 : orientation) << name;
    const absl::Status same = CompareOrientation(ReadPictureFormat(file).value(), file, far ? 1 : orientation);
    EXPECT_EQ(same.message(), far ? "its orientation 6 stands behind its pixels, more than 512 bytes before the end of "
                                    "the file, where it is not looked for: write it before the pixels"
                                  : "")
        << name;
  }
}

TEST(Orientation, OfPicturesWithoutAnyIsOne) {
  for (const auto& [name, golden] : ReadGoldenPixels())
    EXPECT_EQ(OrientationOf(GoldenPicture(name), true).value(), name == "turned.jpg" ? 6 : 1) << name;
}

TEST(Orientation, TurnsPixelsAsPillowDoes) {
  const auto pictures = ReadGoldenPixels("turned.safetensors");
  for (const auto& [name, orientation] : GoldenOrientations()) {
    const std::string file = GoldenPicture(kTurned + name);
    const GoldenPixels& golden = pictures.at(name);
    const auto pixels = DecodePicture<Bicubic>(file, golden.height, golden.width, orientation);
    ASSERT_TRUE(pixels.ok()) << name << pixels.status();
    EXPECT_EQ(pixels->values, std::vector<float>(golden.values.begin(), golden.values.end())) << name;
    const auto bilinear = DecodePicture<Bilinear>(file, golden.height, golden.width, orientation);
    ASSERT_TRUE(bilinear.ok()) << name << bilinear.status();
    for (size_t i = 0; i < golden.values.size(); ++i)
      ASSERT_NEAR(bilinear->values[i], golden.values[i], name == "alpha.png" ? 0.5 : 0) << name << i;
  }
}

// Strips of rows end within a picture, and a resize comes behind the turn.
TEST(Orientation, OfALargerPictureIsResizedAsIfItWereStoredSo) {
  const std::string file = GoldenPicture("restarts.jpg");  // 40 by 50
  const auto stored = DecodePicture<Bicubic>(file, 40, 50);
  ASSERT_TRUE(stored.ok()) << stored.status();
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const bool columns = RowsAreColumns(orientation);
    const int64_t height = columns ? 50 : 40, width = columns ? 40 : 50;
    std::vector<float> turned;
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const bool down = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
        const bool left = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
        const int64_t row = columns ? x : y, column = columns ? y : x;
        const int64_t at = (down ? 39 - row : row) * 50 + (left ? 49 - column : column);
        turned.insert(turned.end(), &stored->values[3 * at], &stored->values[3 * at] + 3);
      }
    }
    const auto same = DecodePicture<Bicubic>(file, height, width, orientation);
    ASSERT_TRUE(same.ok()) << same.status();
    EXPECT_EQ(same->values, turned) << orientation;
    std::vector<float> expected;
    Resizer<Bicubic> resizer(height, width, 23, 31,
                             [&](const float* row) { expected.insert(expected.end(), row, row + 93); });
    for (int64_t y = 0; y < height; ++y) resizer.Add(&turned[3 * width * y]);
    EXPECT_EQ(DecodePicture<Bicubic>(file, 23, 31, orientation)->values, expected) << orientation;
  }
}

// Thumbnails, profiles and pixels are passed over.
TEST(Orientation, IsReadByFewBytes) {
  const std::string jpeg = GoldenPicture(kTurned + "6.jpg"), png = GoldenPicture(kTurned + "exif.png");
  const size_t behind = 4 + static_cast<unsigned char>(jpeg[4]) * 256 + static_cast<unsigned char>(jpeg[5]);
  std::string long_jpeg = jpeg.substr(0, behind);
  for (int i = 0; i < 30; ++i) long_jpeg += "\xff\xe2\xff\xff" + std::string(65533, 'x');
  long_jpeg += jpeg.substr(behind);
  const size_t pixels = png.find("IDAT") - 4;
  std::string long_png = png.substr(0, pixels);
  for (int i = 0; i < 100; ++i) long_png += std::string("\0\0\x20\0IDAT", 8) + std::string(8192 + 4, 'x');
  long_png += png.substr(pixels);
  for (const std::string& file : {long_jpeg, long_png}) {
    int64_t bytes = 0;
    EXPECT_EQ(OrientationOf(file, false, &bytes).value(), 6);
    EXPECT_LT(bytes, 200'000);
  }
  int64_t bytes = 0;
  EXPECT_EQ(OrientationOf(long_png, false, &bytes).value(), 6);
  EXPECT_LT(bytes, 2'000);
}

// Whatever stands there: it is an orientation.
TEST(Orientation, OfDamagedFilesIsOne) {
  uint32_t random = 1;
  const auto draw = [&] { return (random = random * 1664525 + 1013904223) >> 8; };
  for (const auto& [name, orientation] : GoldenOrientations()) {
    const std::string whole = GoldenPicture(kTurned + name);
    for (int i = 0; i < 200; ++i) {
      std::string file = whole;
      for (uint32_t change = draw() % 4; change-- > 0;) file[draw() % file.size()] = static_cast<char>(draw());
      if (i % 4 == 0) file.resize(30 + draw() % (file.size() - 30));
      if (!ReadPictureFormat(file).ok()) continue;
      for (const bool all : {false, true}) {
        const absl::StatusOr<int> found = OrientationOf(file, all);
        if (found.ok()) EXPECT_TRUE(*found >= 1 && *found <= 8) << name << i;
      }
    }
  }
}

}  // namespace
}  // namespace planwright
