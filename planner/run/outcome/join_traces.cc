#include "planner/run/outcome/join_traces.h"

#include <fcntl.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/wire/records/trace.h"

namespace planwright {
namespace {

int64_t Nanoseconds(double seconds) { return WholeNanoseconds(seconds * 1e9); }

absl::StatusOr<Trace> ReadPart(const std::string& run_dir, int rank) {
  const std::string path = TracePath(run_dir, rank);
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kTraceJson.bytes);
  if (!text.ok()) return text.status();
  absl::StatusOr<Trace> trace = ReadTrace(*text);
  if (!trace.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", trace.status().message()));
  return trace;
}

// Clocks that count from the start of a machine differ between machines.
class OneClock {
 public:
  void Move(Trace& trace) {
    if (!first_) first_ = {trace.host, trace.wall_of_zero};
    if (trace.host == first_->first) return;
    const int64_t shift = trace.wall_of_zero - first_->second;
    for (TraceInstruction& instruction : trace.instructions) {
      instruction.begin += shift, instruction.end += shift;
      instruction.launch_begin += shift, instruction.launch_end += shift;
    }
  }

 private:
  std::optional<std::pair<std::string, int64_t>> first_;  // host, and its wall_of_zero
};

// A file that gzip compresses. It has its name once it is whole.
class GzipFile {
 public:
  explicit GzipFile(std::string path) : path_(std::move(path)), beside_(path_ + ".writing") {
    const int fd = OpenToWrite(AT_FDCWD, beside_, O_WRONLY | O_CREAT | O_TRUNC);
    file_ = fd < 0 ? nullptr : gzdopen(fd, "wb");
    if (file_ == nullptr) Note();
  }
  GzipFile(const GzipFile&) = delete;
  ~GzipFile() {
    if (file_ != nullptr) gzclose(file_);
    std::remove(beside_.c_str());
  }

  void Write(std::string_view text) {
    constexpr size_t kMost = size_t{1} << 20;
    for (; status_.ok() && !text.empty(); text.remove_prefix(std::min(kMost, text.size()))) {
      if (gzwrite(file_, text.data(), static_cast<unsigned>(std::min(kMost, text.size()))) <= 0) Note();
    }
  }
  absl::Status Finish() {
    if (!status_.ok()) return status_;
    if (gzclose(std::exchange(file_, nullptr)) != Z_OK || std::rename(beside_.c_str(), path_.c_str()) != 0) Note();
    return status_;
  }

 private:
  void Note() { status_ = WriteFailed("cannot write " + path_, errno); }

  const std::string path_, beside_;
  gzFile file_ = nullptr;
  absl::Status status_;
};

std::string ActionName(const Plan& plan, const StageAction& action) {
  const Module* module = plan.FindModule(action.module);
  std::string name = absl::StrCat(action.module, action.backward ? " backward" : " forward");
  if (module != nullptr && module->grid.pp > 1) absl::StrAppend(&name, " of stage ", action.stage);
  if (action.microbatch >= 0) absl::StrAppend(&name, ", microbatch ", action.microbatch);
  return name;
}

// The predicted step of each rank; none where the speed of the device is unknown.
class Prediction {
 public:
  Prediction(const Plan& plan, const StepTime& time) : plan_(plan), time_(time) {}

  // Adds what was predicted to a trace. `begins`: of its steps, on the clock of the trace. InvalidArgument: the trace
  // is of another plan.
  absl::Status AddTo(Trace& trace, const std::map<int64_t, int64_t>& begins) const {
    if (!time_.seconds) return absl::OkStatus();
    const auto role = std::find_if(time_.roles.begin(), time_.roles.end(), [&](const RoleTime& one) {
      return std::any_of(one.ranks.begin(), one.ranks.end(),
                         [&](const RankRange& range) { return Contains(range, trace.rank); });
    });
    if (role == time_.roles.end() || role->role->name != trace.role)
      return absl::InvalidArgumentError("the plan has no role " + trace.role);
    int64_t step = -1, begin = 0;
    for (TraceInstruction& instruction : trace.instructions) {
      if (instruction.number < 0 || instruction.number >= static_cast<int64_t>(role->entries.size()))
        return absl::InvalidArgumentError(absl::StrCat("the plan has no instruction ", instruction.number));
      if (instruction.step != step) {
        step = instruction.step, begin = begins.at(step);
        for (const StageAction& action : role->actions) {
          trace.planned.push_back(
              {ActionName(plan_, action), "", begin + Nanoseconds(action.start), begin + Nanoseconds(action.end)});
        }
      }
      const PlannedTime& at = role->entries[static_cast<size_t>(instruction.number)];
      if (!(at.length > 0)) continue;
      instruction.planned = Nanoseconds(at.length);
      // Both ends are rounded alike, so that none ends after the action that it is in.
      PlannedSpan span{absl::StrCat(instruction.kind, instruction.frame.empty() ? "" : " ", instruction.frame),
                       instruction.origin, begin + Nanoseconds(at.start), begin + Nanoseconds(at.start + at.length),
                       instruction.stream};
      if (at.action >= 0 && instruction.stream == 0) {
        span.end = std::min(span.end, begin + Nanoseconds(role->actions[static_cast<size_t>(at.action)].end));
      }
      if (span.begin < span.end) trace.planned.push_back(std::move(span));
    }
    // The outer one of spans that begin together stays first.
    std::stable_sort(trace.planned.begin(), trace.planned.end(),
                     [](const PlannedSpan& a, const PlannedSpan& b) { return a.begin < b.begin; });
    return absl::OkStatus();
  }

  int64_t step_length() const { return time_.seconds ? Nanoseconds(time_.length) : 0; }

 private:
  const Plan& plan_;
  const StepTime& time_;
};

}  // namespace

std::string RunTracePath(const std::string& run_dir) { return run_dir + "/trace.json.gz"; }

absl::Status JoinTraces(const Plan& plan, const StepTime& time, const std::string& run_dir,
                        const std::function<bool()>& stop) {
  // Parts are large, so one is held at a time, and each is read twice.
  const Prediction prediction(plan, time);
  std::map<int64_t, int64_t> begins;  // of each step: when the first rank began it
  OneClock clock;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    if (stop && stop()) return absl::CancelledError("the joining of traces was ended");
    absl::StatusOr<Trace> trace = ReadPart(run_dir, rank);
    if (!trace.ok()) return trace.status();
    clock.Move(*trace);
    for (const TraceInstruction& instruction : trace->instructions) {
      const auto [begin, is_new] = begins.try_emplace(instruction.step, instruction.begin);
      if (!is_new) begin->second = std::min(begin->second, instruction.begin);
    }
  }
  // Predicted steps begin with the measured ones. One that would begin before the prediction of the step before it
  // ends begins then: events of one track must not overlap.
  int64_t free = INT64_MIN;
  for (auto& [step, begin] : begins) {
    begin = std::max(begin, free);
    free = begin + prediction.step_length();
  }
  GzipFile file(RunTracePath(run_dir));
  file.Write("{\"displayTimeUnit\": \"ms\",\n \"traceEvents\": [\n");
  for (int rank = 0; rank < plan.world_size; ++rank) {
    if (stop && stop()) return absl::CancelledError("the joining of traces was ended");
    absl::StatusOr<Trace> trace = ReadPart(run_dir, rank);
    if (!trace.ok()) return trace.status();
    clock.Move(*trace);
    if (absl::Status added = prediction.AddTo(*trace, begins); !added.ok())
      return absl::InvalidArgumentError(absl::StrCat(TracePath(run_dir, rank), ": ", added.message()));
    file.Write(absl::StrCat(rank > 0 ? ",\n" : "", TraceEvents(*trace)));
  }
  file.Write("\n]}\n");
  return file.Finish();
}

}  // namespace planwright
