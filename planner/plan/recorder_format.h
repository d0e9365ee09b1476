// The page each rank keeps in RUN/recorder/rankNNNN: what it is doing now. It is memory-mapped, so it survives the death of the
// rank, and the launcher reads it without asking anyone. Torch-free; one writer, any number of readers.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

namespace planwright {

inline constexpr char kRecorderMagic[8] = {'P', 'W', 'R', 'E', 'C', '0', '1', '\0'};

enum class RecorderState : int32_t {
  kStarting = 0,    // joining the others
  kRunning = 1,     // inside `instruction`
  kWaiting = 2,     // inside a communication instruction: waiting for the others of `instruction`'s group is normal here
  kDone = 3,        // the program has ended
  kFailed = 4,      // `message` and `exit_code` say how
};

// All times in nanoseconds. `sequence` is odd while the page is being written: read it before and after, and read again if it
// was odd or has changed. Text is zero-terminated UTF-8, cut to fit.
struct RecorderPage {
  char magic[8];
  int32_t rank;
  int32_t pid;
  std::atomic<uint64_t> sequence;
  int32_t state;        // RecorderState
  int32_t exit_code;    // kFailed
  int64_t step;         // from 1; 0 before the first
  int32_t microbatch;   // -1: none
  int32_t origin;       // index in Plan::origins of the recipe line; -1: none
  uint64_t instructions;  // begun so far: grows while there is progress
  int64_t monotonic;    // CLOCK_MONOTONIC at the start of the instruction
  int64_t wall;         // CLOCK_REALTIME at the same moment
  char host[64];
  char path[256];       // "step 12 > language.layers.3 language.mamba.forward 4": calls and places from the outside in
  char instruction[256];  // "all_gather n -> n_full over language.tp"
  char message[2048];   // kFailed
};
static_assert(sizeof(RecorderPage) <= 4096);
inline constexpr int64_t kRecorderFileBytes = 4096;

// RUN/recorder/rank0003
inline std::string RecorderPath(const std::string& run_dir, int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "/recorder/rank%04d", rank);
  return run_dir + name;
}

}  // namespace planwright
