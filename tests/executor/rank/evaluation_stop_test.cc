#include "executor/rank/evaluation_stop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

namespace planwright::executor {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

constexpr int kRanks = 4;
constexpr int64_t kNever = 1 << 20;

// Each rank is a thread. They do each round together, as ranks that send rows to each other. `asked[rank]`: the round
// before which it is asked to stop. Returns the round at which each of them ended, `rounds` if it came to the end.
std::vector<int64_t> Evaluate(const std::vector<std::unique_ptr<EvaluationStop>>& stops,
                              const std::vector<int64_t>& asked, std::vector<std::atomic<bool>>& flags, int64_t steps,
                              int64_t rounds) {
  std::vector<int64_t> ended(kRanks, rounds);
  std::vector<std::atomic<int64_t>> at(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int64_t round = 0; round <= rounds; ++round) {
        at[rank] = round;
        for (const std::atomic<int64_t>& other : at) {
          while (other < round) std::this_thread::yield();
        }
        if (round == asked[rank]) flags[rank] = true;
        if (!stops[rank]->Before(steps, round, [] {})) continue;
        ended[rank] = round;
        break;
      }
      at[rank] = kNever;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ended;
}

class EvaluationStopTest : public ::testing::Test {
 protected:
  EvaluationStopTest() { Begin(); }
  void Begin() {
    stops_.clear();
    flags_ = std::vector<std::atomic<bool>>(kRanks);
    store_ = c10::make_intrusive<c10d::HashStore>();
    for (int rank = 0; rank < kRanks; ++rank)
      stops_.push_back(std::make_unique<EvaluationStop>(
          rank, 1, *store_, [this, rank] { return flags_[rank].load(); }, 0ms));
  }
  std::vector<int64_t> Run(const std::vector<int64_t>& asked, int64_t steps, int64_t rounds) {
    return Evaluate(stops_, asked, flags_, steps, rounds);
  }

  c10::intrusive_ptr<c10d::HashStore> store_;
  std::vector<std::atomic<bool>> flags_;
  std::vector<std::unique_ptr<EvaluationStop>> stops_;
};

TEST_F(EvaluationStopTest, NobodyIsAsked) {
  EXPECT_THAT(Run({kNever, kNever, kNever, kNever}, 0, 100), Each(100));
  EXPECT_THAT(Run({kNever, kNever, kNever, kNever}, 10, 0), Each(0)) << "a set may have no rounds";
  EXPECT_THAT(Run({kNever, kNever, kNever, kNever}, 20, 7), Each(7));
}

TEST_F(EvaluationStopTest, AllEndAtOneRoundWhoeverIsAsked) {
  for (int rank = 0; rank < kRanks; ++rank) {
    Begin();
    std::vector<int64_t> asked(kRanks, kNever);
    asked[rank] = 5;
    const std::vector<int64_t> ended = Run(asked, 10, 1000);
    EXPECT_THAT(ended, Each(ended[0])) << "rank " << rank;
    EXPECT_THAT(ended[0], AllOf(Ge(5), Le(rank == 0 ? 5 : 6))) << "rank " << rank;
  }
}

// Whoever was asked before it began does no round of it.
TEST_F(EvaluationStopTest, BeforeTheFirstRound) {
  EXPECT_THAT(Run({0, kNever, kNever, kNever}, 10, 100), Each(0));
  EXPECT_THAT(Run({kNever, kNever, kNever, kNever}, 20, 100), Each(0)) << "and none of the next one";
}

// Rounds that are short are not each asked for: the store would have more to do than the ranks.
TEST_F(EvaluationStopTest, ShortRoundsAreAllowedTogether) {
  c10d::HashStore store;
  EvaluationStop stop(
      0, 1, store, [] { return false; }, 1h);
  int64_t settled = 0;
  for (int64_t round = 0; round < 1000; ++round) EXPECT_FALSE(stop.Before(3, round, [&] { ++settled; }));
  EXPECT_LE(settled, 12) << "1, 2, 4, ... rounds at once";
  EXPECT_EQ(store.getNumKeys(), settled);
  EXPECT_GT(stop.longest(), 0);
}

}  // namespace
}  // namespace planwright::executor
