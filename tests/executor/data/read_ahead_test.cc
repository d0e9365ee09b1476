#include "executor/data/read_ahead.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>
#include <stdexcept>
#include <string>

#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

using planwright::testing::Eventually;

constexpr int kMicrobatches = 3;
constexpr int64_t kFirstStep = 4, kLastStep = 6;

// A step with two data instructions in each of three microbatches.
struct Step {
  Instruction tokens, images;
  std::vector<DataRead> reads;

  Step() {
    tokens.kind = OpKind::kReadTokens, images.kind = OpKind::kReadImages;
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      for (const Instruction* instruction : {&images, &tokens})
        reads.push_back({instruction, {.microbatch = microbatch}});
    }
  }
};

int64_t NumberOf(const Instruction& instruction, const CallContext& call) {
  return 100 * call.step + 10 * call.microbatch + (instruction.kind == OpKind::kReadTokens ? 1 : 0);
}

Tensors ReadNumber(const Instruction& instruction, const CallContext& call) {
  return {at::full({1}, NumberOf(instruction, call), at::TensorOptions().dtype(at::kLong))};
}

int64_t Take(ReadAhead& ahead, const Instruction& instruction, CallContext call) {
  return ahead.Take(instruction, call)[0].item<int64_t>();
}

TEST(ReadAhead, EveryReadOfEveryStepComesOnce) {
  Step step;
  std::atomic<int> count = 0;
  ReadAhead ahead([&](const Instruction& instruction, const CallContext& call) {
    ++count;
    return ReadNumber(instruction, call);
  });
  ahead.Begin(step.reads, kFirstStep, kLastStep);
  for (int64_t s = kFirstStep; s <= kLastStep; ++s) {
    for (DataRead read : step.reads) {
      read.call.step = s;
      EXPECT_EQ(Take(ahead, *read.instruction, read.call), NumberOf(*read.instruction, read.call));
    }
  }
  EXPECT_EQ(count, (kLastStep - kFirstStep + 1) * 2 * kMicrobatches) << "nothing is read behind the last step";
}

// Streams take their reads from threads of their own, so a later read of a microbatch may be taken before an earlier
// one.
TEST(ReadAhead, ReadsMayBeTakenInAnotherOrder) {
  Step step;
  ReadAhead ahead(ReadNumber);
  ahead.Begin(step.reads, 0, 1);
  for (int64_t s : {0, 1}) {
    for (int microbatch = 0; microbatch < kMicrobatches; ++microbatch) {
      const CallContext call = {.step = s, .microbatch = microbatch};
      EXPECT_EQ(Take(ahead, step.tokens, call), NumberOf(step.tokens, call));
      EXPECT_EQ(Take(ahead, step.images, call), NumberOf(step.images, call));
    }
  }
}

// Two microbatches are read while nothing is taken, and one read more for each that is.
TEST(ReadAhead, StaysTwoMicrobatchesAhead) {
  Step step;
  std::counting_semaphore<1000> done(0);
  std::atomic<int> count = 0;
  ReadAhead ahead([&](const Instruction& instruction, const CallContext& call) {
    ++count;
    done.release();
    return ReadNumber(instruction, call);
  });
  ahead.Begin(step.reads, 0, 9);
  for (int i = 0; i < 4; ++i) done.acquire();
  EXPECT_EQ(count, 4);
  EXPECT_EQ(Take(ahead, step.images, {}), 0);
  done.acquire();  // comes, since one was taken
  EXPECT_EQ(count, 5);
}

TEST(ReadAhead, AFailureIsThrownWhereItsReadIsTaken) {
  Step step;
  ReadAhead ahead([](const Instruction& instruction, const CallContext& call) {
    if (call.step == 1 && call.microbatch == 1) throw std::runtime_error("sample 14 is broken");
    return ReadNumber(instruction, call);
  });
  ahead.Begin(step.reads, 0, 9);
  for (int64_t s : {0, 1}) {
    for (DataRead read : step.reads) {
      read.call.step = s;
      if (s == 1 && read.call.microbatch == 1) {
        try {
          ahead.Take(*read.instruction, read.call);
          FAIL() << "no exception";
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "sample 14 is broken");
        }
        return;
      }
      EXPECT_EQ(Take(ahead, *read.instruction, read.call), NumberOf(*read.instruction, read.call));
    }
  }
}

// A slow source: the second read begins to end only when it is waited for, and then 7 ns pass. So the order of events
// says how long the wait is, not the speed of this machine.
TEST(ReadAhead, SaysForHowLongAStepWaited) {
  Step step;
  std::binary_semaphore slow(0);
  int64_t now = 0;
  ReadAhead ahead(
      [&](const Instruction& instruction, const CallContext& call) {
        if (call.step == 1 && call.microbatch == 1 && instruction.kind == OpKind::kReadImages) slow.acquire();
        return ReadNumber(instruction, call);
      },
      [&] {
        const int64_t at = now;
        if (now == 0) slow.release();
        now += 7;
        return std::chrono::nanoseconds(at);
      });
  ahead.Begin(step.reads, 1, 1);
  for (int microbatch : {0, 1}) {
    // Nobody waits for the others: what was read is there.
    if (microbatch == 0) {
      ASSERT_TRUE(Eventually([&] { return ahead.ready() == 2; }));
    }
    Take(ahead, step.images, {.step = 1, .microbatch = microbatch});
    if (microbatch == 1) {
      ASSERT_TRUE(Eventually([&] { return ahead.ready() >= 1; }));
    }
    Take(ahead, step.tokens, {.step = 1, .microbatch = microbatch});
  }
  EXPECT_EQ(ahead.WaitedIn(1).count(), 7);
  EXPECT_EQ(ahead.WaitedIn(2).count(), 0);
  EXPECT_EQ(ahead.waits().steps, 2);
  EXPECT_EQ(ahead.waits().all.count(), 7);
  EXPECT_EQ(ahead.waits().worst_step, 1);
}

TEST(ReadAhead, EndsInTheMiddle) {
  Step step;
  {
    ReadAhead ahead(ReadNumber);
    ahead.Begin(step.reads, 0, 1000000);
    Take(ahead, step.images, {});
  }
  ReadAhead without_reads(ReadNumber);  // a rank between the stages of a pipeline
  without_reads.Begin({}, 0, 9);
}

// Though there is room for three more.
TEST(ReadAhead, BeginsNoReadAfterAStop) {
  Step step;
  std::binary_semaphore reads(0), goes_on(0);
  std::atomic<int> count = 0;
  {
    ReadAhead ahead([&](const Instruction& instruction, const CallContext& call) {
      if (++count == 1) {
        reads.release();
        goes_on.acquire();
      }
      return ReadNumber(instruction, call);
    });
    ahead.Begin(step.reads, 0, 9);
    reads.acquire();
    ahead.Stop();
    goes_on.release();
  }
  EXPECT_EQ(count, 1);
}

TEST(ReadAhead, RefusesWhatNoStepReads) {
  Step step;
  ReadAhead ahead(ReadNumber);
  EXPECT_THROW(ahead.Take(step.tokens, {}), c10::Error) << "not begun";
  ahead.Begin(step.reads, 0, 1);
  EXPECT_THROW(ahead.Take(step.tokens, {.microbatch = kMicrobatches}), c10::Error);
  EXPECT_THROW(ahead.Take(step.tokens, {.step = 2}), c10::Error);
  EXPECT_THROW(ahead.Begin(step.reads, 0, 1), c10::Error);
  ReadAhead twice(ReadNumber);
  step.reads.push_back(step.reads.front());
  EXPECT_THROW(twice.Begin(step.reads, 0, 1), c10::Error);
}

}  // namespace
}  // namespace planwright::executor
