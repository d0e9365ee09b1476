#include "planner/base/threads/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace planwright {
namespace {

TEST(ForEachItem, DoesEachItemOnce) {
  for (const int threads : {0, 1, 2, 3, 16}) {
    for (const int64_t items : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> done(static_cast<size_t>(items));
      ForEachItem(threads, items, [&](int64_t item) { ++done[static_cast<size_t>(item)]; });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1) << threads << " threads, " << items << " items";
    }
  }
}

TEST(ForEachItem, ThrowsWhatAnItemThrows) {
  for (const int threads : {1, 4}) {
    std::atomic<int> after{0};
    const auto work = [&](int64_t item) {
      if (item == 10) throw std::runtime_error("item 10");
      if (item > 10) ++after;
    };
    try {
      ForEachItem(threads, 1 << 20, work);
      ADD_FAILURE() << "did not throw";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), std::string("item 10"));
    }
    EXPECT_LT(after, 1 << 19) << "the other threads did not stop";
  }
}

TEST(ThreadsOfRank, SharesTheCoresOfTheMachine) {
  ASSERT_EQ(unsetenv("LOCAL_WORLD_SIZE"), 0);
  const int all = ThreadsOfRank();
  EXPECT_GE(all, 1);
  ASSERT_EQ(setenv("LOCAL_WORLD_SIZE", "2", 1), 0);
  EXPECT_EQ(ThreadsOfRank(), std::max(1, all / 2));
  ASSERT_EQ(setenv("LOCAL_WORLD_SIZE", "1000000", 1), 0);
  EXPECT_EQ(ThreadsOfRank(), 1);
  ASSERT_EQ(setenv("PLANWRIGHT_OWN_CORES", "1", 1), 0);  // what this process may use is no other rank's
  EXPECT_EQ(ThreadsOfRank(), all);
  ASSERT_EQ(unsetenv("PLANWRIGHT_OWN_CORES"), 0);
  ASSERT_EQ(unsetenv("LOCAL_WORLD_SIZE"), 0);
}

// A thread that is one of several at work does all its items alone.
TEST(ThreadLimit, HoldsOnItsThreadWhileItLives) {
  const auto threads_of = [](int threads) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> inside = 0;
    ForEachItem(threads, 2, [&](int64_t) {
      ++inside;
      while (threads > 1 && inside < 2) std::this_thread::yield();  // an item for each of two threads
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    });
    return seen.size();
  };
  EXPECT_EQ(threads_of(2), 2u);
  {
    const ThreadLimit limit(1);
    std::set<std::thread::id> seen;
    ForEachItem(8, 100, [&](int64_t) { seen.insert(std::this_thread::get_id()); });
    EXPECT_EQ(seen, std::set<std::thread::id>{std::this_thread::get_id()});
  }
  EXPECT_EQ(threads_of(2), 2u) << "again";
}

}  // namespace
}  // namespace planwright
