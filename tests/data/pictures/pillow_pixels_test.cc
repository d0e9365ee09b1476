// Pixels of JPEG, WebP and PNG files beside those that Pillow reads, which tests/golden/pictures/make.py stored: equal
// to the bit.
#include <gtest/gtest.h>

#include "planner/data/pictures/decode_picture.h"
#include "tests/data/pictures/golden.h"

namespace planwright {
namespace {

TEST(PillowPixels, AreTheSame) {
  const auto pictures = ReadGoldenPixels();
  EXPECT_EQ(pictures.size(), 53u);
  for (const auto& [name, golden] : pictures) {
    const std::string file = GoldenPicture(name);
    const auto size = ReadPictureSize(file);
    ASSERT_TRUE(size.ok()) << name << size.status();
    EXPECT_EQ((std::pair{size->height, size->width}), (std::pair{golden.height, golden.width})) << name;
    EXPECT_TRUE(CheckPicture(file).ok()) << name << CheckPicture(file);
    const auto pixels = DecodePicture<Bicubic>(file, size->height, size->width);
    ASSERT_TRUE(pixels.ok()) << name << pixels.status();
    // A resize to its own size is the picture.
    EXPECT_EQ(pixels->values, std::vector<float>(golden.values.begin(), golden.values.end())) << name;
    // Without alpha both filters take the same values.
    if (name.find("alpha") != std::string::npos || name == "rgba.png") continue;
    const auto bilinear = DecodePicture<Bilinear>(file, size->height, size->width);
    ASSERT_TRUE(bilinear.ok()) << name << bilinear.status();
    EXPECT_EQ(bilinear->values, std::vector<double>(golden.values.begin(), golden.values.end())) << name;
  }
}

// What is mixed with white is not rounded with `bilinear`.
TEST(PillowPixels, OfBilinearOnWhiteAreWithinOneHalf) {
  const auto pictures = ReadGoldenPixels();
  for (const std::string name :
       {"alpha.webp", "lossless_alpha.webp", "rgba.png", "deep_alpha.png", "gamma_alpha.png"}) {
    const auto bytes = pictures.at(name).values;
    const auto size = ReadPictureSize(GoldenPicture(name));
    ASSERT_TRUE(size.ok()) << size.status();
    const auto pixels = DecodePicture<Bilinear>(GoldenPicture(name), size->height, size->width);
    ASSERT_TRUE(pixels.ok()) << pixels.status();
    ASSERT_EQ(pixels->values.size(), bytes.size());
    size_t between = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_NEAR(pixels->values[i], bytes[i], 0.5) << name << i;
      between += pixels->values[i] != bytes[i];
    }
    EXPECT_GT(between, bytes.size() / 2) << name;
  }
}

}  // namespace
}  // namespace planwright
