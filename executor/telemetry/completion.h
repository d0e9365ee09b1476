// How far a device is with what it was given. A launch returns long before its work is done, so a rank that hangs
// cannot say where by looking at what it launched last.
#pragma once

#include <cstdint>
#include <memory>

namespace planwright::executor {

class Completion {
 public:
  virtual ~Completion() = default;
  // All work of instruction `number` is launched. Numbers grow by one. Waits only for a device that is far behind.
  virtual void Mark(uint64_t number) = 0;
  // The last marked instruction that is done, and with it all before it. From any thread, also of a device that hangs:
  // then soon, with what was known before.
  virtual uint64_t Finished() = 0;
};

// For the current CUDA device: an event after each instruction, on the stream that is current when it is marked. The
// host is kept from running more than a few dozen instructions ahead. Only in builds with CUDA.
std::unique_ptr<Completion> MakeCudaCompletion();

}  // namespace planwright::executor
