#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "executor/ops/handler.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

TEST(PixelShuffle, GoldenOfA4x6ImageOf2Channels) {
  std::ifstream file(InSource("tests/golden/upstream_public.json"));
  const auto golden =
      nlohmann::json::parse(file).at("derived").at("pixel_shuffle_4x6x2").at("source_patch_and_channel");
  const auto expected = golden.get<std::vector<std::vector<std::array<int64_t, 2>>>>();
  ASSERT_EQ(expected.size(), 6u);

  Plan plan;
  CallContext call;
  call.plan = &plan;
  Instruction instruction;
  instruction.attributes = {{"factor", int64_t{2}}};
  const at::Tensor x = at::arange(4 * 6 * 2, at::kLong).view({24, 2});  // every number names its patch and channel
  const at::Tensor out =
      ops::RunPixelShuffle({instruction, call, {x, at::tensor({4, 6}, at::kLong).view({1, 2})}, {}, {}})[0];
  ASSERT_EQ(out.sizes(), (at::IntArrayRef{6, 8}));
  for (size_t token = 0; token < expected.size(); ++token) {
    ASSERT_EQ(expected[token].size(), 8u);
    for (size_t channel = 0; channel < 8; ++channel) {
      const auto [patch, source] = expected[token][channel];
      EXPECT_EQ(out[token][channel].item<int64_t>(), patch * 2 + source)
          << "token " << token << ", channel " << channel;
    }
  }
}

}  // namespace
}  // namespace planwright::executor
