// The command line of the executor.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "planner/wire/records/trace.h"

namespace planwright::executor {

struct RankOptions {
  std::string plan, run_dir;     // never empty
  int life = 1;                  // of the run directory
  std::optional<int64_t> steps;  // at most so many steps of the plan; 0: only the evaluation before the first
  std::string device;            // "cpu" or "cuda"; empty: the plan says
  std::string probe;             // folder; empty: nothing is probed
  std::string record_routing, replay_routing;  // folders; at most one is not empty
  std::optional<StepRange> profile;            // steps to trace
  std::string rounds;                          // file of communications to time after the steps; empty: none
};

// executor --plan FILE --run-dir DIR [--life N] [--probe DIR] [--steps N] [--trace STEP[-LAST]]
//     [--record-routing DIR | --replay-routing DIR] [--rounds FILE] [--device cpu|cuda]
// (`executor --devices` alone prints what its ranks can compute on, device.h.)
// InvalidArgument, with the usage, names what cannot be read.
absl::StatusOr<RankOptions> ReadOptions(int argc, const char* const* argv);

}  // namespace planwright::executor
