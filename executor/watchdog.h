// Threads beside the walker that end a rank which gets nowhere. The walker cannot: it waits inside Gloo, NCCL or CUDA.
// Whoever asks a backend may come to wait there too, so a thread of its own does; the one that counts the time asks
// nobody.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "executor/communication/failure.h"
#include "executor/telemetry/recorder.h"

namespace planwright::executor {

class Watchdog {
 public:
  struct Duties {
    // How long one instruction may be the first that is not done: a communication from when it began, any other from
    // when it was launched on a device. Work of the host has no limit of its own, as reading weights may take long; the
    // peers' limits end what never does.
    std::chrono::milliseconds limit;
    // What a backend says by itself.
    std::function<std::optional<CommunicationError>()> find_failure;
    // Called from either thread: the instruction that is not done, if there is one, and what is wrong.
    std::function<void(FailureKind, const std::optional<RecordedInstruction>&, const std::string&)> end;
  };

  Watchdog(Recorder& recorder, Duties duties);
  ~Watchdog();  // stops watching

 private:
  void Watch();
  void Ask();
  bool Sleep(std::chrono::milliseconds period);  // false: it is over
  // Adds to how long the rank has been where it is; true once that is too long.
  bool Stuck(std::chrono::nanoseconds passed);

  Recorder& recorder_;
  const Duties duties_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;

  uint64_t current_ = 0;  // the first instruction that is not done; 0: none
  bool limited_ = false;  // whether the limit holds for it
  std::chrono::nanoseconds waited_{};
  std::thread watch_, ask_;  // the last members: they read the others
};

}  // namespace planwright::executor
