#include "executor/telemetry/instruction_clock.h"

#include <time.h>

#include <utility>

namespace planwright::executor {
namespace {

// Threads of several streams write different spans.
class HostInstructionClock : public InstructionClock {
 public:
  explicit HostInstructionClock(size_t instructions) : spans_(instructions) {}

  void Begin(size_t number) override { spans_[number].begin = MonotonicNow(); }
  void End(size_t number) override { spans_[number].end = MonotonicNow(); }
  std::vector<InstructionSpan> Read() override { return std::move(spans_); }

 private:
  std::vector<InstructionSpan> spans_;
};

}  // namespace

int64_t MonotonicNow() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
}

std::unique_ptr<InstructionClock> MakeHostInstructionClock(size_t instructions) {
  return std::make_unique<HostInstructionClock>(instructions);
}

}  // namespace planwright::executor
