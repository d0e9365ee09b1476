// When instructions begin and end on the device, for a profile of a step. Nothing here makes the host wait before Read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace planwright::executor {

// Nanoseconds of CLOCK_MONOTONIC.
int64_t MonotonicNow();

// One run of an instruction, by MonotonicNow.
struct InstructionSpan {
  int64_t begin = 0;  // its stream has come to it: all that it waits for is done
  int64_t end = 0;    // its work is done
};

class InstructionClock {
 public:
  virtual ~InstructionClock() = default;
  // Called around the work of an instruction, on its thread, with its stream current. Instructions are numbered from 0;
  // on each stream the numbers ascend.
  virtual void Begin(size_t number) = 0;
  virtual void End(size_t number) = 0;
  // All spans, by number. Called once, after every instruction was begun and ended. The current stream must wait for
  // all others (Streams::Join); the host then waits for the device.
  virtual std::vector<InstructionSpan> Read() = 0;
};

// For `instructions` instructions. Everything that Begin and End need is made here. The host's clock serves CPUs: an
// instruction is done when its call returns.
std::unique_ptr<InstructionClock> MakeHostInstructionClock(size_t instructions);
// For the current CUDA device: events on the streams. Only in builds with CUDA.
std::unique_ptr<InstructionClock> MakeCudaInstructionClock(size_t instructions);

}  // namespace planwright::executor
