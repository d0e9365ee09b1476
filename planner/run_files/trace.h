// The trace that a rank writes for `--profile STEPS`: when each instruction of these steps ran. RUN/trace_rank_3.json
// is in Chrome's trace format, which https://ui.perfetto.dev opens. A rank is a process there. Its first track is the
// host, the others are the streams of its device. The launcher reads the traces to sum them up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// Each profiled step needs two device events for each instruction, made beforehand and kept until the last step is
// done.
inline constexpr int64_t kMostProfiledSteps = 16;

// Steps first to last, both included, counted from 1.
struct StepRange {
  int64_t first = 1, last = 1;

  int64_t count() const { return last - first + 1; }
};

// Reads "5" or "5-7". The messages of InvalidArgument, here and below, are for the user.
absl::StatusOr<StepRange> ReadStepRange(const std::string& text);
std::string StepRangeText(const StepRange& range);
// InvalidArgument if a run of `steps` steps does not have all of these.
absl::Status CheckStepRange(const StepRange& range, int64_t steps);

// One run of one instruction. Times are nanoseconds of CLOCK_MONOTONIC, which all ranks of a machine share.
struct TraceInstruction {
  int64_t step = 0;         // from 1
  int64_t number = 0;       // its place in the step of its role, with every call opened, from 0
  std::string kind, frame;  // "linear", "language.layers.3"; of an instruction of no frame: its module, or empty
  std::string part;         // what of the model or the step it belongs to: "language.mamba", "data", "optimizer"
  std::string text;         // "linear n @in_proj -> zxbcdt"
  std::string op_class;     // "compute", "communication", "state", "data"
  std::string path;         // the calls around it: "language.s0.forward > language.mamba.forward"; may be empty
  std::string origin;       // the recipe line; may be empty
  int64_t layer = -1, microbatch = -1;       // -1: none
  int64_t stream = 0;                        // index of Trace::streams
  int64_t launch_begin = 0, launch_end = 0;  // when the host launched it
  int64_t begin = 0, end = 0;                // when its stream came to it, and when it was done
};

struct Trace {
  int rank = 0;
  std::string role;
  StepRange steps;
  std::vector<std::string> streams;            // names of the device's streams; the main stream, "", comes first
  std::vector<TraceInstruction> instructions;  // in the order of the program, step by step
};

// RUN/trace_rank_3.json
std::string TracePath(const std::string& run_dir, int rank);

// The text of the file. Each instruction is two events: on the host's track, and on the track of its stream.
std::string TraceJson(const Trace& trace);
// Reads it again. Times may be off by a few nanoseconds on a machine that has been up for months. InvalidArgument if
// the text is not a trace of this program.
absl::StatusOr<Trace> ReadTrace(std::string_view text);

}  // namespace planwright
