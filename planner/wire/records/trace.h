// When each instruction of some steps ran (`--trace STEPS`). Each rank writes RUN/trace/rank0003.json, its part, when
// these steps are done. The launcher sums the parts up (planner/run/outcome/sum_traces.h) and joins them
// (planner/run/outcome/join_traces.h). Both files are in Chrome's trace format, which https://ui.perfetto.dev opens. A
// rank is a process there. Its first track is the host, the others are the streams of its device.
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
  bool operator==(const StepRange&) const = default;
};

// Reads "5" or "5-7". The messages of InvalidArgument, here and below, are for the user.
absl::StatusOr<StepRange> ReadStepRange(const std::string& text);
std::string StepRangeText(const StepRange& range);
// InvalidArgument if a run of `steps` steps does not have all of these.
absl::Status CheckStepRange(const StepRange& range, int64_t steps);

// Whole nanoseconds, at most 30 years of them: a predicted time may be longer, a file may say anything, and sums of a
// few such times fit 64 bits.
int64_t WholeNanoseconds(double nanoseconds);

// One run of one instruction. Times are nanoseconds of CLOCK_MONOTONIC, which all ranks of a machine share.
struct TraceInstruction {
  int64_t step = 0;         // from 1
  int64_t number = 0;       // its index in the step of its role, with every call opened, from 0
  std::string kind, frame;  // "linear", "language.layers.3"; of an instruction of no frame: its module, or empty
  std::string part;         // what of the model or the step it belongs to: "language.mamba", "data", "optimizer"
  std::string text;         // "linear n @in_proj -> zxbcdt"
  std::string op_class;     // "compute", "communication", "state", "data"
  std::string path;         // the calls around it: "language.s0.forward > language.mamba.forward"; may be empty
  std::string origin;       // the recipe line; may be empty
  int64_t layer = -1, microbatch = -1;       // -1: none
  int64_t stream = 0;                        // index of Trace::streams
  int64_t launch_begin = 0, launch_end = 0;  // when the host launched it
  int64_t waited = 0;                        // of that, for a device that was many instructions behind
  int64_t begin = 0, end = 0;                // when its stream came to it, and when it was done
  int64_t planned = -1;                      // nanoseconds that it was predicted to take; -1: nothing is known
};

// What a rank was predicted to do, and when. Each stream of the device has a track of these, after those that ran.
struct PlannedSpan {
  std::string name;    // "language forward, microbatch 2", or inside it "linear language.layers.3"
  std::string recipe;  // the line; may be empty
  int64_t begin = 0, end = 0;
  int64_t stream = 0;  // index of Trace::streams
};

struct Trace {
  int rank = 0;
  std::string role;
  std::string host;          // where the rank ran
  std::string device;        // what its device calls itself: "NVIDIA H200", a processor's model
  std::string driver;        // of a GPU: its version
  std::string libraries;     // "LibTorch 2.11.0, CUDA 12.8, NCCL 2.27.5"
  int64_t wall_of_zero = 0;  // CLOCK_REALTIME of the host when CLOCK_MONOTONIC was 0, in nanoseconds
  StepRange steps;
  std::vector<std::string> streams;            // names of the device's streams; the main stream, "", comes first
  std::vector<TraceInstruction> instructions;  // in the order of the program, step by step
  std::vector<PlannedSpan> planned;            // the launcher adds them; outer spans before those inside them
};

// RUN/trace/rank0003.json
std::string TracePath(const std::string& run_dir, int rank);

// The text of the file. Each instruction is two events: on the host's track, and on the track of its stream.
std::string TraceJson(const Trace& trace);
// Only the events, with commas between them and none at the end.
std::string TraceEvents(const Trace& trace);
// Reads it again. Times may be off by a few nanoseconds on a machine that has been up for months. InvalidArgument if
// the text is not a trace of this program.
absl::StatusOr<Trace> ReadTrace(std::string_view text);

}  // namespace planwright
