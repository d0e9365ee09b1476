// Who waits for whom in a run, for tests/run/network/nodes_apart.
//
//   waits_of_run RUN_DIR
//
// RUN_DIR is of a run with --trace. Prints JSON: the seconds of a step and, for each class of ranks, how many of them a
// rank waits for ranks of other classes, and for which class most (null: for none). Means over ranks and traced steps.
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/plan/plan_json.h"
#include "planner/predict/estimate/rank_classes.h"
#include "planner/predict/estimate/time_use.h"
#include "planner/predict/simulate/replayed_step.h"
#include "planner/run/measure/align_clocks.h"
#include "planner/run/measure/gloo_spans.h"

namespace planwright {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 30;

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << "waits_of_run: " << value.status().message() << "\n";
  exit(1);
}

// By class: the time that a rank of it waits for those of each class.
using Waits = std::vector<std::vector<double>>;

nlohmann::ordered_json Told(double length, const Waits& waits, const std::vector<std::string>& names) {
  nlohmann::ordered_json classes = nlohmann::ordered_json::object();
  for (size_t c = 0; c < waits.size(); ++c) {
    double others = 0;
    size_t most = 0;
    for (size_t other = 0; other < waits.size(); ++other) {
      others += other == c ? 0 : waits[c][other];
      if (other != c && (most == c || waits[c][other] > waits[c][most])) most = other;
    }
    nlohmann::ordered_json& told = classes[names[c]];
    told["waits"] = others;
    told["for"] = others > 0 && most != c ? nlohmann::ordered_json(names[most]) : nlohmann::ordered_json();
  }
  return {{"step", length}, {"classes", classes}};
}

int Print(const std::string& run_dir) {
  const Plan plan = Must(ReadPlan(Must(ReadWholeFile(run_dir + "/plan.json", kMostBytes))));
  const std::vector<RankClass> classes = ClassesOf(plan);
  std::vector<std::string> names;
  std::vector<size_t> class_of(static_cast<size_t>(plan.world_size));
  for (size_t c = 0; c < classes.size(); ++c) {
    names.push_back(plan.roles[static_cast<size_t>(classes[c].role)].name);
    if (!classes[c].what.empty()) names.back() += ", " + classes[c].what;
    for (int rank : Expand(classes[c].ranks)) class_of[static_cast<size_t>(rank)] = c;
  }

  const RankPrograms ranks(plan);
  std::vector<Trace> traces;
  for (int rank = 0; rank < plan.world_size; ++rank)
    traces.push_back(Must(ReadTrace(Must(ReadWholeFile(TracePath(run_dir, rank), kMostBytes)))));
  AlignClocks(ranks, traces);
  const GlooSpans spans(ranks);
  Waits traced(classes.size(), std::vector<double>(classes.size(), 0));
  double length = 0;
  const auto steps = static_cast<double>(traces.front().steps.count());
  for (int64_t step = traces.front().steps.first; step <= traces.front().steps.last; ++step) {
    ReplayedStep replayed = ReplayOf(ranks, traces, step, HostModel::kRunsMainStream);
    // A wait is what is left when communications last as long as predicted ones do.
    const std::vector<std::vector<std::optional<double>>> lasts = spans.Of(traces, step);
    for (size_t r = 0; r < lasts.size(); ++r) {
      for (size_t i = 0; i < lasts[r].size(); ++i) {
        EntryTime& time = replayed.times[r].kinds[i];
        if (lasts[r][i]) time.waits = true, time.run = *lasts[r][i];
      }
    }
    // The simulation finds what each communication waited for.
    const SimulatedStep again =
        SimulateStep(ranks.programs(), ranks.waits(), ranks.matches(), replayed.times, HostModel::kRunsMainStream);
    length += replayed.length / steps;
    for (size_t r = 0; r < class_of.size(); ++r) {
      const std::vector<double> waited_for = TimeUseOf(*ranks.programs()[r], again, r).waited_for;
      const double share = 1 / (steps * static_cast<double>(classes[class_of[r]].count()));
      for (size_t other = 0; other < waited_for.size(); ++other)
        traced[class_of[r]][class_of[other]] += share * waited_for[other];
    }
  }

  std::cout << Told(length, traced, names).dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace planwright

int main(int argc, char** argv) {
  if (argc == 2) return planwright::Print(argv[1]);
  std::cerr << "usage: waits_of_run RUN_DIR\n";
  return 2;
}
