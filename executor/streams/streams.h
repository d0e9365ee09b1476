// Runs the instructions of a program that uses several streams: on threads on a CPU, on CUDA streams on a GPU. The
// walker hands instructions over one by one in program order, each with what it must wait for
// (planner/plan/stream_dependencies.h). A program on one stream does not use this room.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "executor/telemetry/recorder.h"

namespace planwright::executor {

// Where one instruction runs and what it waits for. Instructions are numbered from 0 over all streams, in program
// order.
struct StreamLaunch {
  int stream = 0;                     // 0: the main stream, on which the walker itself works
  const std::vector<int64_t>& waits;  // by stream: the last instruction of it that must be done first; -1: none
  // A communication starts only after all earlier communications have started, on any stream (docs/progress.md).
  bool communicates = false;
};

class Streams {
 public:
  virtual ~Streams() = default;
  // Whether Run calls the work for `stream` itself, before it returns. If not, another thread calls it later, and the
  // work must hold everything that it needs.
  virtual bool runs_on_caller(int stream) const = 0;
  virtual void Run(const StreamLaunch& launch, const std::function<void()>& work) = 0;
  // Everything that the caller does after Join comes after all work given so far. (On a GPU the main stream waits, not
  // the host.)
  virtual void Join() = 0;
};

// Called before each instruction, on its thread and stream. Tests use it to delay instructions at random.
using BeforeInstruction = std::function<void()>;

// One thread for each stream except the main one, which is the caller's. From now on the recorder counts an instruction
// as done when its thread has done it. If work throws, `fail` is called on that thread; it must not return.
std::unique_ptr<Streams> MakeHostStreams(int streams, Recorder& recorder,
                                         std::function<void(const std::exception&)> fail,
                                         BeforeInstruction before_instruction);

// CUDA streams of the current device. Only in builds with CUDA.
std::unique_ptr<Streams> MakeCudaStreams(int streams, Recorder& recorder, BeforeInstruction before_instruction);

}  // namespace planwright::executor
