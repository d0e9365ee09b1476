// Grids and patches of `resize: bicubic` and `grid: round_half_even` beside those of transformers' image processor of
// nemotron_h_omni, and those of `bicubic_8bit` and `smart_resize` beside those of Qwen's, which
// tests/golden/transformers_pixels/make.py stored.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "planner/data/pictures/patches.h"
#include "tests/data/pictures/golden.h"

namespace planwright {
namespace {

const std::string kFolder = "tests/golden/transformers_pixels/";

// On processors without fused products, the compiler adds none of its own.
#if defined(__x86_64__) && !defined(__FMA__)
constexpr double kMostDifference = 0;
#else
constexpr double kMostDifference = 1e-6;
#endif

void ExpectSameGrids(const std::string& stored, GridRule rule) {
  const Golden golden(kFolder + stored);
  const auto settings = golden.Read<int64_t>("settings"), grids = golden.Read<int64_t>("grids");
  ASSERT_EQ(grids.size(), 20000u);
  size_t next = 0, wrong = 0;
  int thin = 0, other_by_ceil = 0;
  for (size_t i = 0; i + 5 <= settings.size(); i += 5) {
    const int64_t patch = settings[i], shuffle = settings[i + 1], least = settings[i + 2], most = settings[i + 3];
    for (const size_t end = next + settings[i + 4]; next < end; ++next) {
      const auto part = [&](int bit) { return grids[next] >> bit & 0xffff; };
      const int64_t height = part(0), width = part(16), rows = part(32), cols = part(48);
      const auto found = DynamicResolution(height, width, patch, least, most, shuffle, rule);
      // A grid that transformers does not have, or that is above the limit that memory is planned for.
      const bool none = rows == 0 || rows * cols > most;
      const bool same = none ? found.rows * found.cols <= most : found.rows == rows && found.cols == cols;
      thin += none;
      const auto by_ceil = DynamicResolution(height, width, patch, least, most, shuffle, GridRule::kCeil);
      other_by_ceil += !none && !(by_ceil.rows == rows && by_ceil.cols == cols);
      if (same || ++wrong > 20) continue;
      ADD_FAILURE() << height << " by " << width << " pixels (patch " << patch << ", pixel_shuffle " << shuffle
                    << ", min_patches " << least << ", max_patches " << most << "): transformers makes " << rows
                    << " by " << cols << " patches, found " << found.rows << " by " << found.cols;
    }
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(next, grids.size());
  // The sizes are such that a wrong rule shows.
  EXPECT_GT(other_by_ceil, 1000);
  EXPECT_GT(thin, 100);
}

TEST(TransformersPixels, GridsOfAllSizesAreTheSame) { ExpectSameGrids("grids.safetensors", GridRule::kRoundHalfEven); }

TEST(TransformersPixels, SmartGridsOfAllSizesAreTheSame) {
  ExpectSameGrids("smart_grids.safetensors", GridRule::kSmartResize);
}

// The image NAME, of whatever format.
std::string FileOf(const std::string& name) {
  for (const char* extension : {".png", ".jpg", ".webp"}) {
    if (std::filesystem::exists(InSource(kFolder + name + extension))) return ReadGolden(kFolder + name + extension);
  }
  throw std::runtime_error("no image " + name);
}

// `stored`: patches of Value, of which `pixel` makes what the encoder gets.
template <typename Filter, typename Value>
void ExpectSamePatches(const std::string& stored, size_t images, GridRule rule, const PixelNorm& norm,
                       float (*pixel)(Value)) {
  const Golden golden(kFolder + stored);
  std::set<std::string> names;
  for (const auto& [tensor, place] : golden.tensors()) names.insert(tensor.substr(0, tensor.find('.')));
  EXPECT_EQ(names.size(), images);
  for (const std::string& name : names) {
    const auto settings = golden.Read<int64_t>(name + ".settings"), grid = golden.Read<int64_t>(name + ".grid");
    const std::string file = FileOf(name);
    const auto size = ReadPictureSize(file);
    ASSERT_TRUE(size.ok()) << size.status();
    const auto found =
        DynamicResolution(size->height, size->width, settings[0], settings[2], settings[3], settings[1], rule);
    EXPECT_EQ((std::vector{found.rows, found.cols}), grid) << name;
    const auto image = PatchesOfPicture<Filter>(file, found, settings[0], 1, norm);
    ASSERT_TRUE(image.ok()) << name << image.status();
    // Of a large image only some patches are stored.
    auto patches = golden.Read<Value>(name + ".patches");
    const size_t values = 3 * settings[0] * settings[0];
    std::vector<int64_t> numbers;
    if (golden.tensors().contains(name + ".numbers")) numbers = golden.Read<int64_t>(name + ".numbers");
    const size_t stored_values = numbers.empty() ? image->patches.size() : numbers.size() * values;
    if (sizeof(Value) == 1 && patches.size() < stored_values + 8) patches.resize(stored_values);  // zeros behind them
    EXPECT_EQ(patches.size(), stored_values) << name;
    double worst = 0;
    for (size_t i = 0; i < patches.size(); ++i) {
      const size_t at = numbers.empty() ? i : numbers[i / values] * values + i % values;
      worst = std::max(worst, std::abs(pixel(patches[i]) - image->patches.at(at)));
    }
    EXPECT_LE(worst, kMostDifference) << name;
    testing::Test::RecordProperty(name, testing::PrintToString(worst));
  }
}

void ExpectOmni(const std::string& stored, size_t images) {
  ExpectSamePatches<Bicubic, float>(stored, images, GridRule::kRoundHalfEven, kClipNorm,
                                    [](float value) { return value; });
}

TEST(TransformersPixels, PatchesAreTheSame) { ExpectOmni("patches.safetensors", 16); }

TEST(TransformersPixels, PatchesOfJpegAndWebpAreTheSame) { ExpectOmni("photos.safetensors", 5); }

TEST(TransformersPixels, PatchesOfQwenAreTheSame) {
  ExpectSamePatches<BicubicBytes, uint8_t>("qwen_patches.safetensors", 21, GridRule::kSmartResize,
                                           *FindPixelNorm("half"),
                                           [](uint8_t value) { return (static_cast<float>(value) - 127.5f) / 127.5f; });
}

// Squares, of which the last pixels are in no patch.
template <typename Filter>
void ExpectSiglip(const std::string& stored) {
  const Golden golden(kFolder + stored);
  int images = 0;
  for (const auto& [tensor, place] : golden.tensors()) {
    if (!tensor.ends_with(".patches")) continue;
    const std::string name = tensor.substr(0, tensor.find('.'));
    const auto settings = golden.Read<int64_t>(name + ".settings");
    const int64_t patch = settings[0], side = settings[1], whole = side / patch;
    EXPECT_NE(whole * patch, side);
    const auto image = PatchesOfPicture<Filter>(FileOf(name), {whole, whole}, patch, 1, *FindPixelNorm("half"), side);
    ASSERT_TRUE(image.ok()) << name << image.status();
    EXPECT_EQ(static_cast<int64_t>(image->patches.size()), whole * whole * 3 * patch * patch);
    const auto pixels = golden.Read<uint8_t>(tensor);
    for (size_t i = 0; i < image->patches.size(); ++i)
      ASSERT_EQ(image->patches[i], (static_cast<float>(pixels[i]) - 127.5f) / 127.5f) << name << i;
    ++images;
  }
  EXPECT_EQ(images, 21);
}

TEST(TransformersPixels, PatchesOfSiglipAreTheSame) { ExpectSiglip<BicubicBytes>("siglip_patches.safetensors"); }

TEST(TransformersPixels, BilinearPatchesOfSiglipAreTheSame) {
  ExpectSiglip<BilinearBytes>("siglip2_patches.safetensors");
}

}  // namespace
}  // namespace planwright
