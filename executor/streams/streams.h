// Where the instructions of a program on several streams run: threads on a CPU, CUDA's streams on a GPU. The walker
// hands them over one by one in program order, each with what it must wait for (planner/plan/stream_dependencies.h); a
// program on one stream needs none of this.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/telemetry/recorder.h"

namespace planwright::executor {

// One instruction's place in the order. Instructions count from 0, over all streams.
struct StreamPlace {
  int stream = 0;                     // 0: the walker's own
  const std::vector<int64_t>& waits;  // by stream: the last instruction of it that must be done first; -1: none
  bool communicates = false;          // it starts after all earlier ones that do have started
};

class Streams {
 public:
  virtual ~Streams() = default;
  // Whether work given for `stream` is done by the caller, before Run returns. Else another thread does it later, and
  // `work` must hold all that it needs.
  virtual bool here(int stream) const = 0;
  virtual void Run(const StreamPlace& place, const std::function<void()>& work) = 0;
  // What the walker does from here on comes after all that was given.
  virtual void Join() = 0;
};

// Called before each instruction, on its thread and stream: tests delay them at random.
using BeforeEach = std::function<void()>;

// A thread for each stream but the first. From now on the recorder counts an instruction as done when its thread has
// done it. `fail` is called on the thread whose work throws, and does not return.
std::unique_ptr<Streams> MakeHostStreams(int streams, Recorder& recorder,
                                         std::function<void(const std::exception&)> fail, BeforeEach before_each);

// On the current device. Only in builds with CUDA.
std::unique_ptr<Streams> MakeCudaStreams(int streams, Recorder& recorder, BeforeEach before_each);

}  // namespace planwright::executor
