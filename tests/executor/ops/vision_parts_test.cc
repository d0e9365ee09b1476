// How the images of a lane are dealt to the coordinates of an encoder's cp axis. cut_test.cc runs the operations on
// such parts.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "tests/executor/ops/run_op.h"

namespace planwright::executor::vision_parts_test {
namespace {

constexpr int64_t kFactor = 2, kClasses = 3;

using Grids = std::vector<std::vector<int64_t>>;

struct Case {
  const char* name;
  Grids grids;
  int64_t cp;
  friend void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }
};

class VisionParts : public testing::TestWithParam<Case> {
 protected:
  int64_t Images() const { return static_cast<int64_t>(GetParam().grids.size()); }
  int64_t Patches() const { return grid().select(1, 0).mul(grid().select(1, 1)).sum().item<int64_t>(); }
  int64_t Tokens() const { return Patches() + Images() * kClasses; }

  at::Tensor grid() const {
    at::Tensor all = at::empty({Images(), 2}, at::kLong);
    for (int64_t i = 0; i < Images(); ++i) all[i].copy_(at::tensor(GetParam().grids[i], at::kLong));
    return all;
  }
  // Rows of each part: of tokens, and of image tokens.
  Tensors Counts() const {
    return Op({{"class_tokens", kClasses}, {"cp", GetParam().cp}, {"factor", kFactor}})
        .OnCpRank(0, static_cast<int>(GetParam().cp))
        .Run(ops::RunDealBands, {grid()});
  }

  at::Tensor Slice(const at::Tensor& x, const at::Tensor& counts, int64_t coordinate) const {
    return Op({{"axis", std::string("cp")}})
        .OnCpRank(static_cast<int>(coordinate), static_cast<int>(GetParam().cp))
        .Run(ops::RunSliceRows, {x, counts})[0];
  }
};

TEST_P(VisionParts, CountsAreThoseOfTheRule) {
  // The rule of docs/layouts/sequence.md#encoder, band by band.
  const int64_t cp = GetParam().cp, lane = Patches() / (kFactor * kFactor);
  std::vector<int64_t> tokens(cp, 0), rows(cp, 0);
  int64_t a = 0;
  for (const auto& image : GetParam().grids) {
    for (int64_t band = 0; band < image[0] / kFactor; ++band) {
      const int64_t b = a + image[1] / kFactor, part = cp * (a + b) / (2 * lane);
      rows[part] += b - a;
      tokens[part] += (b - a) * kFactor * kFactor + (band == 0 ? kClasses : 0);
      a = b;
    }
  }
  EXPECT_TRUE(at::equal(Counts()[0], at::tensor(tokens, at::kLong)));
  EXPECT_TRUE(at::equal(Counts()[1], at::tensor(rows, at::kLong)));
}

TEST_P(VisionParts, SlicesJoinToTheWhole) {
  const at::Tensor x = Random({Tokens(), 3});
  Tensors parts;
  for (int64_t part = 0; part < GetParam().cp; ++part) parts.push_back(Slice(x, Counts()[0], part));
  EXPECT_TRUE(at::equal(at::cat(parts), x));
  EXPECT_THROW(Slice(Random({Tokens() + 1, 3}), Counts()[0], 0), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Lanes, VisionParts,
                         testing::Values(Case{"mixed", {{4, 6}, {2, 4}, {6, 2}}, 2},
                                         Case{"mixed_four", {{4, 6}, {2, 4}, {6, 2}}, 4},
                                         Case{"odd_parts", {{6, 2}, {2, 10}, {4, 4}, {2, 2}, {8, 6}}, 3},
                                         // ends with a part; then a part has no class token of its own
                                         Case{"images_end_with_parts", {{4, 4}, {2, 8}, {4, 2}, {2, 4}}, 2},
                                         Case{"one_tall_image", {{16, 2}}, 4}, Case{"the_whole_table", {{8, 8}}, 2},
                                         Case{"one_square", {{2, 2}}, 2},
                                         Case{"two_squares_for_four", {{2, 2}, {2, 2}}, 4}, Case{"no_images", {}, 2}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::executor::vision_parts_test
