// Which checkpoints a run keeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planner/state/checkpoint/run_lives.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Steps of `found` that are to go, in this order.
std::vector<int64_t> Removed(const std::vector<int64_t>& steps, int64_t keep_last, int64_t keep_every,
                             int64_t verified) {
  std::vector<FoundCheckpoint> found;
  for (int64_t step : steps) found.emplace_back().manifest.counters.step = step;
  std::vector<int64_t> removed;
  for (const FoundCheckpoint& checkpoint : CheckpointsToRemove(found, keep_last, keep_every, "", verified))
    removed.push_back(checkpoint.manifest.counters.step);
  return removed;
}

TEST(Retention, KeepsTheNewestSomeForGoodAndTheVerified) {
  const std::vector<int64_t> steps = {12, 10, 8, 6, 4, 2};
  EXPECT_THAT(Removed(steps, 2, 0, -1), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(Removed(steps, 2, 4, -1), ElementsAre(2, 6));
  EXPECT_THAT(Removed(steps, 1, 0, 6), ElementsAre(2, 4, 8, 10));
  EXPECT_THAT(Removed(steps, 1, 5, 12), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(Removed(steps, 6, 0, -1), IsEmpty());
  EXPECT_THAT(Removed(steps, 1000, 0, -1), IsEmpty());
  EXPECT_THAT(Removed({}, 1, 1, 1), IsEmpty());
}

TEST(Retention, KeepsTheBestOfASet) {
  std::vector<FoundCheckpoint> found;
  for (const int64_t step : {12, 10, 8, 6, 4, 2}) found.emplace_back().manifest.counters.step = step;
  const auto of_step = [&](int64_t step) -> Manifest& { return found[6 - step / 2].manifest; };
  of_step(4).notes.evaluation = {{"held_out", {2.0, "5f"}}, {"other", {1.0, "5f"}}};
  of_step(8).notes.evaluation = {{"held_out", {2.0, "5f"}}};
  of_step(10).notes.evaluation = {{"held_out", {2.5, "5f"}}, {"other", {0.5, "5f"}}};
  const auto removed = [&](const std::string& set) {
    std::vector<int64_t> steps;
    for (const FoundCheckpoint& one : CheckpointsToRemove(found, 1, 0, set, -1))
      steps.push_back(one.manifest.counters.step);
    return steps;
  };
  EXPECT_THAT(removed("held_out"), ElementsAre(2, 4, 6, 10)) << "of two with the same loss the newer one";
  EXPECT_THAT(removed("other"), ElementsAre(2, 4, 6, 8));
  EXPECT_THAT(removed("unknown"), ElementsAre(2, 4, 6, 8, 10));
  EXPECT_EQ(BestCheckpoint(found, "held_out")->manifest.counters.step, 8);
  EXPECT_EQ(BestCheckpoint(found, "unknown"), nullptr);
}

// The samples of a set may be changed between two lives. Its losses of before are those of another set.
TEST(Retention, ComparesLossesOfTheSameSamples) {
  std::vector<FoundCheckpoint> found;
  const auto add = [&](int64_t step, std::optional<double> loss, const std::string& samples) {
    Manifest& manifest = found.emplace_back().manifest;
    manifest.counters.step = step;
    manifest.notes.evaluation["held_out"] = {loss, samples};
  };
  add(12, std::nullopt, "new");
  add(10, 5.0, "new");
  add(8, 4.5, "new");
  add(6, 2.0, "old");
  add(4, 1.0, "");
  add(2, 0.5, "");
  const auto best = [&] { return BestCheckpoint(found, "held_out"); };
  EXPECT_EQ(best()->manifest.counters.step, 8);
  EXPECT_EQ(CheckpointsToRemove(found, 1, 0, "held_out", -1).size(), 4U) << "12 and 8 stay";
  found.erase(found.begin() + 1, found.begin() + 3);
  EXPECT_EQ(best(), nullptr) << "the only loss of the newest samples is not finite";
  found.erase(found.begin());
  EXPECT_EQ(best()->manifest.counters.step, 6);
  found.erase(found.begin());
  EXPECT_EQ(best()->manifest.counters.step, 2) << "of older programs: their losses are of one set";
}

}  // namespace
}  // namespace planwright
