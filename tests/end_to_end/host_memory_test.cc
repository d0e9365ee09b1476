// Checkpoints that are copied through less memory than they need (cluster.host_memory): the same bytes, and a run that
// goes on from them as if nothing had been.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "tests/end_to_end/checkpoint_run.h"

namespace planwright::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class HostMemoryRun : public CheckpointRun {
 protected:
  static constexpr char kTwoRanks[] = "cluster.gpus_per_node=2";

  // What `plan show memory` says of the run's plan.
  nlohmann::json Memory(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"show",
                                    Recipe(),
                                    "memory",
                                    "--json",
                                    "modules.language.placement.first_rank=1",
                                    "batch.micro_samples=2",
                                    "budget.train_samples=320",
                                    "budget.learning_rate.decay_samples=320",
                                    "checkpoint.every_steps=2"};
    all.insert(all.end(), words.begin(), words.end());
    const Ended shown = Plan(all);
    EXPECT_EQ(shown.status, 0) << shown.output;
    return nlohmann::json::parse(shown.output, nullptr, false);
  }

  // The digest of each tensor of the newest checkpoint.
  nlohmann::json Digests() {
    nlohmann::json all;
    for (const char* index : {"/rank-00000.json", "/rank-00001.json"}) {
      const std::string text = ReadAll(Checkpoints() + "/" + CheckpointNames().back() + index);
      const nlohmann::json tensors = nlohmann::json::parse(text).at("tensors");
      for (const auto& [key, tensor] : tensors.items()) all[key] = tensor.at("sha256");
    }
    return all;
  }
};

TEST_F(HostMemoryRun, CopiesThroughLittleMemoryAreTheSame) {
  const Ended whole = Run(4, {kTwoRanks});
  ASSERT_EQ(whole.status, 0) << whole.output;
  EXPECT_THAT(whole.output, Not(HasSubstr(" through ")));
  const nlohmann::json expected = Digests();
  std::filesystem::remove_all(RunDir());

  int64_t ranks = 0, most = 0;
  const nlohmann::json before = Memory({kTwoRanks});
  for (const nlohmann::json& role : before.at("roles")) {
    const nlohmann::json& bytes = role.at("host_bytes");
    EXPECT_EQ(bytes.at("copies"), bytes.at("checkpoint"));
    ranks += bytes.at("rank").get<int64_t>();
    most = std::max(most, bytes.at("checkpoint").get<int64_t>());
  }
  ASSERT_GT(most, 2 << 20) << "the state must be larger than the memory that it gets here";
  char given[64];
  std::snprintf(given, sizeof given, "cluster.host_memory=%.9f", static_cast<double>(ranks + (9 << 18)) / 1e9);
  const std::vector<std::string> words = {kTwoRanks, given};
  int64_t copies = 0;
  const nlohmann::json after = Memory(words);
  for (const nlohmann::json& role : after.at("roles"))
    copies = std::max(copies, role.at("host_bytes").at("copies").get<int64_t>());
  EXPECT_LT(copies, most);

  const Ended little = Run(4, words);
  ASSERT_EQ(little.status, 0) << little.output;
  EXPECT_THAT(little.output, HasSubstr(" through 0.00"));  // rank 1 alone is limited, or both
  EXPECT_EQ(Digests(), expected);
  ExpectWholeCheckpoints(2);
  const Ended resumed = Run(9, words);
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  ExpectCurve(9);
}

TEST_F(HostMemoryRun, TooLittleMemoryIsRefused) {
  const Ended ended = Run(4, {kTwoRanks, "cluster.host_memory=0.5"});
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("PW0703"));
  EXPECT_THAT(ended.output, HasSubstr("cluster.host_memory gives 0.500 GB"));
}

}  // namespace
}  // namespace planwright::testing
