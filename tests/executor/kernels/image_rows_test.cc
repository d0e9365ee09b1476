// Patches by their places, and rows of images at image tokens: kernels beside the plain forms in fp64. Without a GPU
// the tests are skipped.
#include <ATen/ops/arange.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

class ImageRows : public Kernels {
 protected:
  // Grids are rows and columns of patches.
  static void CheckPositions(int64_t side, int64_t width, const std::vector<int64_t>& grids) {
    SCOPED_TRACE(testing::Message() << "a table of " << side << ", rows of " << width << ", " << grids.size() / 2
                                    << " images");
    const at::Tensor grid = at::tensor(grids, at::kLong).view({-1, 2});
    const int64_t patches = grid.prod(1).sum().item<int64_t>();
    const Attributes attributes = {{"side", side}};
    const at::Tensor table = Random({side * side, width});
    Check("add positions", ops::RunAddPositions,
          {.attributes = attributes,
           .inputs = {Random({patches, width}), grid},
           .parameters = {table},
           .host_inputs = {1}});
    Check("add positions grad", ops::RunAddPositionsGrad,
          {.attributes = attributes,
           .inputs = {Random({patches, width}), grid},
           .gradients_like = {table},
           .host_inputs = {1}});
  }

  // `images`: how many of the tokens are image tokens.
  static void CheckTokens(int64_t samples, int64_t positions, int64_t images, int64_t width) {
    SCOPED_TRACE(testing::Message() << samples << " samples of " << positions << " tokens, " << images
                                    << " of them images, rows of " << width);
    const int64_t count = samples * positions, image_token = 7;
    at::Tensor tokens = at::randint(8, 1000, {count}, at::kLong);
    tokens.index_fill_(0, at::randperm(count, at::kLong).narrow(0, 0, images), image_token);
    const KernelCheck check = {
        .attributes = {{"image_token", image_token}},
        .inputs = {Random({positions, samples, width}), Random({images, width}), tokens.view({samples, positions})}};
    Check("merge images", ops::RunMergeImages, check);
    Check("add images", ops::RunAddImages, check);
  }
};

// Tables that are larger and smaller than images, images of one row, and one that is the table.
TEST_F(ImageRows, PositionsOfAnyImages) {
  CheckPositions(48, 1024, {64, 48, 32, 64, 40, 40, 48, 48});
  CheckPositions(48, 1152, {2, 2, 100, 60});
  CheckPositions(4, 8, {1, 1, 1, 7, 9, 1, 4, 4, 30, 22, 2, 6});
  CheckPositions(2, 64, {6, 4});
  CheckPositions(1, 64, {6, 4, 1, 1});
  CheckPositions(5, 2560, {10, 6});
  CheckPositions(6, 20, {4, 6});  // the plain form
}

TEST_F(ImageRows, TokensOfAnyBatch) {
  CheckTokens(2, 4096, 3072, 2048);
  CheckTokens(1, 1024, 1024, 64);
  CheckTokens(3, 1025, 1, 8);
  CheckTokens(4, 700, 1301, 1536);
  CheckTokens(1, 5, 3, 8);
  CheckTokens(2, 40, 16, 12);  // the plain form
}

// These have a plain form alone, which moves 16 bytes at a time where it can. Nothing is rounded.
TEST_F(ImageRows, MovesOfAnyWidth) {
  for (const int64_t width : {24, 30, 1024}) {
    for (const int64_t first : {8, 5}) {
      SCOPED_TRACE(testing::Message() << first << " of " << width);
      const Attributes cut = {{"first", first}};
      Check("split features", ops::RunSplitFeatures, {.attributes = cut, .inputs = {Random({37, width})}});
      Check("join features grad", ops::RunJoinFeaturesGrad, {.attributes = cut, .inputs = {Random({37, 2, width})}});
    }
    Check("repeat frames", ops::RunRepeatFrames,
          {.attributes = {{"frames", int64_t{2}}}, .inputs = {Random({37, 3 * width})}});
    const at::Tensor grid = at::tensor({4, 6, 2, 8}, at::kLong).view({2, 2});
    KernelCheck shuffle = {
        .attributes = {{"factor", int64_t{2}}}, .inputs = {Random({40, width}), grid}, .host_inputs = {1}};
    Check("pixel shuffle", ops::RunPixelShuffle, shuffle);
    shuffle.inputs[0] = Random({10, 4 * width});
    Check("pixel shuffle grad", ops::RunPixelShuffleGrad, shuffle);
  }
}

TEST_F(ImageRows, SquaresOfAnyRows) {
  for (const int64_t elements : {1, 7, 8, 1024 * 1000 + 8, 3072 * 2049})
    Check("square sum", ops::RunSquareSum, {.inputs = {Random({elements})}});
}

}  // namespace
}  // namespace planwright::executor
