// The recorder of a rank: memory-mapped pages in the file RUN/recorder/rankNNNN, in which the rank notes its latest
// instructions and how many of them are done. The pages survive the death of the rank, and the launcher can read them
// while the rank hangs. One writer, any number of readers, no locks. Torch-free.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace planwright {

inline constexpr char kRecorderMagic[8] = {'P', 'W', 'R', 'E', 'C', '0', '3', '\0'};

enum class RecorderState : int32_t {
  kStarting = 0,  // no instruction has begun
  kRunning = 1,   // in an instruction that needs no other rank
  kWaiting = 2,   // in a communication: here it is normal to wait for the other ranks of the group
  kDone = 3,      // the program has ended
  kFailed = 4,    // `message` and `exit_code` say how
  kStoring = 5,   // in an instruction that saves or loads: it makes progress as long as bytes move
  kReading = 6,   // in an instruction that reads samples: as kStoring, but it is work of this rank's own
};

// One instruction, as it lies in the file. Times are in nanoseconds. Texts are zero-terminated UTF-8, cut to fit.
struct RecorderEntry {
  // Number of the instruction, from 1; 0 while the entry is being written. A reader reads it before and after the rest:
  // if it has changed, the rest belongs to two instructions (ReadEntry).
  std::atomic<uint64_t> number;
  int64_t step;        // from 1; 0 before the first
  int64_t monotonic;   // CLOCK_MONOTONIC when it began
  int64_t wall;        // CLOCK_REALTIME at the same moment
  int64_t deadline;    // how long it may be the first unfinished one (docs/failures.md#deadlines)
  int32_t state;       // kRunning, kWaiting, kStoring or kReading
  int32_t microbatch;  // -1: none
  int32_t origin;      // index in Plan::origins of the recipe line; -1: none
  // "step 12 > language.layers.3 language.mamba.forward 4": calls and indices from the outside in
  char path[256];
  char instruction[256];  // "all_gather n -> n_full over language.tp"
};

// Entries of a page. The host runs ahead of its device; where the device is can be told while the host is at most this
// many instructions ahead.
inline constexpr uint64_t kRecorderEntries = 2048;

// How long a rank computed in one step: the time that the first unfinished instruction was one that needs no other
// rank. It is sampled.
struct RecorderPace {
  std::atomic<int64_t> step;  // from 1; 0: empty, or being written
  int64_t busy;               // nanoseconds
};
inline constexpr int64_t kRecorderPaces = 64;  // step n is in n % kRecorderPaces

struct RecorderPage {
  char magic[8];
  int32_t rank;
  int32_t pid;
  std::atomic<int32_t> state;   // RecorderState
  int32_t exit_code;            // kFailed
  std::atomic<uint64_t> begun;  // number of the latest instruction; it grows while the rank makes progress
  std::atomic<uint64_t> done;   // this instruction and all before it are complete, also on the device
  int64_t failed;               // kFailed: CLOCK_MONOTONIC when the rank noticed
  char host[64];
  char message[2048];  // kFailed
  RecorderPace paces[kRecorderPaces];
  // A ring: instruction n is in entry n % kRecorderEntries, until a later one overwrites it.
  RecorderEntry entries[kRecorderEntries];
};

// A consistent copy of an entry.
struct RecordedInstruction {
  uint64_t number = 0;
  RecorderState state{};
  int64_t step = 0, monotonic = 0, wall = 0, deadline = 0;
  int microbatch = -1, origin = -1;
  std::string path, text;
};

// "step 12 > language.layers.3 language.mamba.forward 4 > all_gather n -> n_full over language.tp"
inline std::string PathText(const RecordedInstruction& instruction) {
  return instruction.path + (instruction.path.empty() || instruction.text.empty() ? "" : " > ") + instruction.text;
}

// Reads the entry of instruction `number` (from 1) while the rank may be writing. None: the instruction has not begun,
// or a later one has overwritten it.
inline std::optional<RecordedInstruction> ReadEntry(const RecorderPage& page, uint64_t number) {
  const RecorderEntry& entry = page.entries[number % kRecorderEntries];
  if (number == 0 || entry.number.load(std::memory_order_acquire) != number) return std::nullopt;
  RecordedInstruction read;
  read.number = number;
  read.state = static_cast<RecorderState>(entry.state);
  read.step = entry.step, read.monotonic = entry.monotonic, read.wall = entry.wall, read.deadline = entry.deadline;
  read.microbatch = entry.microbatch, read.origin = entry.origin;
  read.path.assign(entry.path, strnlen(entry.path, sizeof entry.path));
  read.text.assign(entry.instruction, strnlen(entry.instruction, sizeof entry.instruction));
  // The copy above must be complete before the number is read again.
  std::atomic_thread_fence(std::memory_order_acquire);
  if (entry.number.load(std::memory_order_relaxed) != number) return std::nullopt;
  return read;
}

struct RecordedPace {
  int64_t step = 0, busy = 0;
};

// The paces of a page, by step, while the rank may be writing.
inline std::vector<RecordedPace> ReadPaces(const RecorderPage& page) {
  std::vector<RecordedPace> paces;
  for (const RecorderPace& pace : page.paces) {
    const RecordedPace read{pace.step.load(std::memory_order_acquire), pace.busy};
    std::atomic_thread_fence(std::memory_order_acquire);
    if (read.step > 0 && pace.step.load(std::memory_order_relaxed) == read.step) paces.push_back(read);
  }
  std::sort(paces.begin(), paces.end(), [](const RecordedPace& a, const RecordedPace& b) { return a.step < b.step; });
  return paces;
}

// RUN/recorder/rank0003
inline std::string RecorderPath(const std::string& run_dir, int rank) {
  char name[32];
  std::snprintf(name, sizeof name, "/recorder/rank%04d", rank);
  return run_dir + name;
}

}  // namespace planwright
