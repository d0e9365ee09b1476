#include "executor/data/samples_ahead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <semaphore>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "planner/base/threads/threads.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

using planwright::testing::Eventually;

constexpr int64_t kBytes = 80;  // of a sample: ten tokens
constexpr int64_t kSamples = 10;

// A step of ten samples, each read once.
std::vector<SampleNeed> NeedsOf(int64_t step) {
  std::vector<SampleNeed> needs;
  for (int64_t i = 0; i < kSamples; ++i) needs.push_back({.number = step * kSamples + i, .reads = 1});
  return needs;
}

DecodedSample Tokens(const SampleNeed& need) {
  DecodedSample decoded;
  decoded.sample.tokens.assign(kBytes / 8, need.number);
  return decoded;
}

SamplesAhead::Work Work(std::function<DecodedSample(const SampleNeed&)> decode = Tokens) {
  return {NeedsOf, [](const SampleNeed&) { return kBytes; }, std::move(decode)};
}

int64_t Take(SamplesAhead& ahead, int64_t number) {
  const int64_t token = ahead.Get(number).sample.tokens.at(9);
  ahead.Done(number, -1);
  return token;
}

TEST(SamplesAhead, ManyThreadsDecodeEachSampleOnce) {
  std::mutex mutex;
  std::multiset<int64_t> decoded;
  {
    SamplesAhead ahead(8, 12 * kBytes, Work([&](const SampleNeed& need) {
                         const std::lock_guard lock(mutex);
                         decoded.insert(need.number);
                         return Tokens(need);
                       }));
    ahead.Begin(3, 202);
    for (int64_t number = 30; number < 2030; ++number) ASSERT_EQ(Take(ahead, number), number);
    EXPECT_LE(ahead.held().most, 12 * kBytes);
    EXPECT_EQ(ahead.held().now, 0);
    EXPECT_THROW(ahead.Get(2030), c10::Error) << "there is no step more";
  }
  EXPECT_EQ(decoded.size(), 2000u);
  EXPECT_EQ(std::set<int64_t>(decoded.begin(), decoded.end()).size(), 2000u);
}

TEST(SamplesAhead, HoldsNoMoreThanItMay) {
  std::atomic<int> count = 0;
  SamplesAhead ahead(4, 3 * kBytes + 1, Work([&](const SampleNeed& need) {
                       ++count;
                       return Tokens(need);
                     }));
  ahead.Begin(0, 9);
  ASSERT_TRUE(Eventually([&] { return count == 3 && ahead.held().now == 3 * kBytes; }));
  EXPECT_EQ(Take(ahead, 0), 0);
  ASSERT_TRUE(Eventually([&] { return count == 4; })) << "one more for the one that was taken";
  EXPECT_EQ(ahead.held().most, 3 * kBytes);
}

TEST(SamplesAhead, ASampleThatIsWaitedForMayBeLargerThanAll) {
  SamplesAhead ahead(4, kBytes / 2, Work());
  ahead.Begin(0, 0);
  // Both are held: the first of them has a read that comes later.
  EXPECT_EQ(ahead.Get(0).sample.tokens[0], 0);
  EXPECT_EQ(Take(ahead, 1), 1);
  EXPECT_EQ(ahead.held().most, 2 * kBytes);
}

TEST(SamplesAhead, IsAtMostInTheNextStep) {
  std::atomic<int64_t> largest = 0;
  std::atomic<int> count = 0;
  SamplesAhead ahead(3, 1000 * kBytes, Work([&](const SampleNeed& need) {
                       if (need.number > largest) largest = need.number;
                       ++count;
                       return Tokens(need);
                     }));
  ahead.Begin(0, 9);
  ASSERT_TRUE(Eventually([&] { return count == 20; }));
  for (int64_t number = 0; number < 9; ++number) Take(ahead, number);
  EXPECT_EQ(largest, 19) << "step 0 is still being read";
  Take(ahead, 9);
  EXPECT_TRUE(Eventually([&] { return count == 30; }));
}

TEST(SamplesAhead, AFailureIsThrownToWhoGetsTheSample) {
  std::binary_semaphore later_failed(0);
  SamplesAhead ahead(4, 100 * kBytes, Work([&](const SampleNeed& need) {
                       if (need.number == 1) later_failed.acquire();  // it comes after the failure of sample 2
                       if (need.number != 2) return Tokens(need);
                       later_failed.release();
                       throw std::runtime_error("sample 2 is broken");
                     }));
  ahead.Begin(0, 9);
  EXPECT_EQ(Take(ahead, 0), 0);
  EXPECT_EQ(Take(ahead, 1), 1);
  EXPECT_THROW(ahead.Get(2), std::runtime_error);
  EXPECT_THROW(ahead.Get(9999), std::runtime_error) << "nothing is begun after a failure";
}

TEST(SamplesAhead, FailsWhereTheNeedsOfAStepCannotBeKnown) {
  SamplesAhead::Work work = Work();
  work.needs = [](int64_t step) {
    if (step == 1) throw std::runtime_error("no index");
    return NeedsOf(step);
  };
  SamplesAhead ahead(2, 2 * kBytes, work);
  ahead.Begin(0, 9);
  for (int64_t number = 0; number < 10; ++number) EXPECT_EQ(Take(ahead, number), number);
  EXPECT_THROW(ahead.Get(10), std::runtime_error);
}

// Several reads take of one sample; its pixels go with the last read of them.
TEST(SamplesAhead, LetsGoOfPixelsBeforeTheText) {
  SamplesAhead::Work work = Work([](const SampleNeed& need) {
    DecodedSample decoded = Tokens(need);
    decoded.sample.images = {{{1, 2, std::vector<double>(6)}}};
    decoded.pixels.resize(1);
    return decoded;
  });
  work.needs = [](int64_t) { return std::vector<SampleNeed>{{.number = 0, .reads = 3, .pixels = {{2, true}}}}; };
  SamplesAhead ahead(1, 1000, work);
  ahead.Begin(0, 0);
  EXPECT_EQ(ahead.Get(0).sample.images[0][0].patches.size(), 6u);
  ahead.Done(0, 0);
  EXPECT_EQ(ahead.held().now, kBytes + 48);
  ahead.Done(0, 0);
  EXPECT_EQ(ahead.held().now, kBytes);
  EXPECT_EQ(ahead.Get(0).sample.tokens.size(), 10u);
  ahead.Done(0, -1);
  EXPECT_EQ(ahead.held().now, 0);
}

TEST(SamplesAhead, EndsInTheMiddle) {
  SamplesAhead ahead(4, 5 * kBytes, Work());
  ahead.Begin(0, 1000000);
  EXPECT_EQ(Take(ahead, 0), 0);
}

// Sources spread the work of one sample over threads. Where as many samples are decoded as there are threads, each has
// its own alone.
TEST(SamplesAhead, OneOfManySamplesHasOneThread) {
  std::atomic<int> inside = 0;
  std::counting_semaphore<8> go_on(0);
  std::mutex mutex;
  std::set<int> seen;
  SamplesAhead ahead(4, 1000 * kBytes, Work([&](const SampleNeed& need) {
                       std::set<std::thread::id> threads;
                       if (++inside == 4) go_on.release(4);
                       if (need.number < 4) go_on.acquire();  // four at once
                       ForEachItem(4, 64, [&](int64_t) {
                         const std::lock_guard lock(mutex);
                         threads.insert(std::this_thread::get_id());
                       });
                       const std::lock_guard lock(mutex);
                       if (need.number == 3) seen.insert(static_cast<int>(threads.size()));
                       return Tokens(need);
                     }));
  ahead.Begin(0, 0);
  for (int64_t number = 0; number < kSamples; ++number) Take(ahead, number);
  EXPECT_EQ(seen, std::set<int>{1}) << "the fourth of four at once";
}

}  // namespace
}  // namespace planwright::executor
