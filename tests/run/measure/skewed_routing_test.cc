// Made-up choices of experts: as unequal as they shall be within a rank, and equal between ranks.
#include "planner/run/measure/skewed_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "planner/base/files/file_io.h"
#include "planner/wire/records/routing_folder.h"
#include "planner/wire/records/routing_format.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

class SkewedRouting : public ::testing::TestWithParam<double> {};

TEST_P(SkewedRouting, GivesTheFullestExpertsTheirPart) {
  const double fullest = GetParam();
  const Plan plan = testing::CompiledFile(
      InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
      {"cluster.gpus_per_node=2", "models.hybrid_moe_tiny.moe.experts=16", "modules.language.placement.ranks=2",
       "modules.language.parallel.ep=2", "modules.radio_encoder.placement.ranks=2"});
  ASSERT_EQ(MostSkew(plan), 8);
  const std::string folder = ::testing::TempDir() + "skewed_routing_test";
  std::filesystem::remove_all(folder);
  constexpr int64_t kSteps = 5;
  const absl::Status written = WriteSkewedRouting(plan, kSteps, fullest, folder);
  ASSERT_TRUE(written.ok()) << written;
  EXPECT_TRUE(CheckReplayRouting(plan, kSteps, folder).ok()) << CheckReplayRouting(plan, kSteps, folder);
  const Module& language = *plan.FindModule("language");
  const auto k = static_cast<size_t>(language.top_k());
  ASSERT_EQ(k, 2U);
  for (const LayerSummary& layer : language.layers) {
    if (layer.expert_row < 0) continue;
    const std::string bytes = *ReadWholeFile(RoutingPath(folder, layer.frame), 1 << 24);
    std::vector<RoutingId> ids(bytes.size() / sizeof(RoutingId));
    std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(ids.data()));
    std::vector<double> counts(16);
    for (size_t t = 0; t < ids.size(); t += k) {
      EXPECT_EQ(std::set(ids.begin() + static_cast<int64_t>(t), ids.begin() + static_cast<int64_t>(t + k)).size(), k);
      for (size_t j = t; j < t + k; ++j) ++counts.at(static_cast<size_t>(ids[j]));
    }
    const double mean = static_cast<double>(ids.size()) / 16;
    for (size_t first : {0, 8}) {
      double rank = 0;
      for (size_t e = first; e < first + 8; ++e) rank += counts[e];
      EXPECT_NEAR(rank / (8 * mean), 1, 0.02);
      EXPECT_NEAR(counts[first] / mean, fullest, 0.1);
      EXPECT_NEAR(counts[first + 3] / mean, (8 - fullest) / 7, 0.1);
    }
  }
  std::filesystem::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(Parts, SkewedRouting, ::testing::Values(1.0, 2.0, 4.0, 8.0),
                         [](const auto& info) { return "fullest" + std::to_string(static_cast<int>(info.param)); });

TEST(MostSkew, IsNoneWithoutExperts) {
  EXPECT_EQ(MostSkew(testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                                           {"models.hybrid_moe_tiny.pattern=M*M*"})),
            0);
}

}  // namespace
}  // namespace planwright
