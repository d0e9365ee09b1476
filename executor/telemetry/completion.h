// How far a device is with what it was given. A launch returns long before its work is done, so a rank that hangs cannot say where by
// looking at what it launched last.
#pragma once

#include <cstdint>
#include <memory>

namespace planwright::executor {

class Completion {
 public:
  virtual ~Completion() = default;
  // All work of instruction `number` is launched, on the current stream. Numbers grow. Never waits.
  virtual void Mark(uint64_t number) = 0;
  // The last marked instruction that is done, and with it everything launched before. From any thread, also of a device that hangs.
  virtual uint64_t Finished() const = 0;
};

// For the current CUDA device: the stream itself writes each number to host memory when it comes to it. Only in builds with CUDA.
std::unique_ptr<Completion> MakeCudaCompletion();

}  // namespace planwright::executor
