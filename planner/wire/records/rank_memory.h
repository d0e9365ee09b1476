// The most memory that a rank's GPU held: RUN/memory/rank0003.json, which the rank writes when it is done.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace planwright {

// In bytes.
struct RankMemory {
  int rank = 0;
  // Held from setup to the end, in the categories of docs/memory.md.
  int64_t parameters = 0, gradients = 0, optimizer = 0;
  int64_t tensors_peak = 0;   // the most that tensors held at one time, with those above
  int64_t reserved_peak = 0;  // the most that the allocator had taken from the driver
  int64_t used = 0;           // of the whole device at the end: tensors, context, libraries, and other processes

  int64_t held() const { return parameters + gradients + optimizer; }
};

// RUN/memory/rank0003.json
std::string RankMemoryPath(const std::string& run_dir, int rank);

std::string RankMemoryJson(const RankMemory& memory);
// InvalidArgument if the text is not one of these.
absl::StatusOr<RankMemory> ReadRankMemory(std::string_view text);

}  // namespace planwright
