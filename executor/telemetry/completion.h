// How far a device is with what it was given. A launch returns long before its work is done, so a rank that hangs cannot say where by
// looking at what it launched last.
#pragma once

#include <cstdint>
#include <memory>

namespace planwright::executor {

class Completion {
 public:
  virtual ~Completion() = default;
  // All work of instruction `number` is launched, on the current stream. Numbers grow by one. Never waits.
  virtual void Mark(uint64_t number) = 0;
  // The last marked instruction that is done, and with it all before it. From any thread, also of a device that hangs. Never waits.
  virtual uint64_t Finished() = 0;
};

// For the current CUDA device: an event after each instruction. Marks are on one stream. Only in builds with CUDA.
std::unique_ptr<Completion> MakeCudaCompletion();

}  // namespace planwright::executor
