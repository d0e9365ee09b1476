// Whether a run that stops and goes on is the run that never stopped, and whether weights come to every rank that has a
// part of them.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "tests/gpu/shared/shared_cases.h"
#include "tests/numerics/gathered_checkpoint.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kStop = 2, kSteps = 4;
constexpr double kFp64 = 1e-9;

Layout Saving(Layout layout) {
  layout.training = ReshardTraining();
  return layout;
}

std::string NewestCheckpoint(const std::string& run_dir) {
  std::string newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir + "/checkpoints", error))
    newest = std::max(newest, entry.path().string());
  return newest;
}

std::string WhyNotResumed(const TrainingRun& run, const std::string& what, size_t steps, bool probes = true) {
  const std::string wrong = WhyNotRun(run, what, steps, probes);
  if (!wrong.empty() || run.output.find("resuming after step " + std::to_string(kStop)) != std::string::npos)
    return wrong;
  return what + " did not resume\n" + run.output;
}

// Where a run goes on; a run's checkpoints go with it.
struct RunFolder {
  explicit RunFolder(SharedRuns& runs) : path(runs.Folder() + "/run") {}
  ~RunFolder() { fs::remove_all(path); }
  RunFolder(const RunFolder&) = delete;
  const std::string path;
};

// The first step of a run that resumed is another one than that of the whole run.
TrainingRun WithoutFirstStep(TrainingRun run) {
  run.gradients_first.clear();
  return run;
}

// Two steps on one layout and two on another train the curve of one rank.
SharedResult JudgeResume(SharedRuns& runs, const Layout& from, const Layout& to) {
  const TrainingRun& one = runs.One(from, "fp64", "cpu", kSteps);
  std::string wrong = WhyNotRun(one, "one rank on the CPU", kSteps);
  if (!wrong.empty()) return {wrong};
  const RunFolder run_dir(runs);
  const TrainingRun begun = runs.Train(from, {.precision = "fp64", .steps = kStop, .run_dir = run_dir.path});
  wrong = WhyNotRun(begun, from.name, kStop);
  if (!wrong.empty()) return {wrong};
  const TrainingRun resumed = runs.Train(to, {.precision = "fp64", .steps = kSteps, .run_dir = run_dir.path});
  wrong = WhyNotResumed(resumed, to.name, kSteps);
  if (!wrong.empty()) return {wrong};
  return ResultOf(Compare(WithoutFirstStep(resumed), WithoutFirstStep(one), kFp64), false);
}

// On the same layout, to the bit.
SharedResult JudgeBits(SharedRuns& runs, Layout layout) {
  if (runs.device() == "cuda") layout.training.push_back("precision.deterministic=true");
  const RunFolder run_dir(runs);
  const TrainingRun whole = runs.Train(layout, {.precision = "bf16", .steps = kSteps});
  std::string wrong = WhyNotRun(whole, "the run that does not stop", kSteps);
  if (!wrong.empty()) return {wrong};
  const TrainingRun begun = runs.Train(layout, {.precision = "bf16", .steps = kStop, .run_dir = run_dir.path});
  wrong = WhyNotRun(begun, "the run that stops", kStop);
  if (!wrong.empty()) return {wrong};
  const TrainingRun resumed = runs.Train(layout, {.precision = "bf16", .steps = kSteps, .run_dir = run_dir.path});
  wrong = WhyNotResumed(resumed, "the run that stopped", kSteps);
  if (!wrong.empty()) return {wrong};
  SharedResult result = ResultOf(Compare(WithoutFirstStep(resumed), WithoutFirstStep(whole), 0), false);
  for (const auto& [name, tensor] : whole.parameters_last) {
    if (resumed.parameters_last.at(name).values != tensor.values) result.wrong += name + " has other bits\n";
  }
  result.figures = std::to_string(whole.parameters_last.size()) + " parameters and all metrics have the same bits";
  return result;
}

// A checkpoint that one layout saved and another one loads and saves again holds the same bits.
SharedResult JudgeReshard(SharedRuns& runs, const Layout& from, const Layout& to) {
  const RunFolder run_dir(runs);
  const TrainingRun trained =
      runs.Train(from, {.precision = "bf16", .steps = kStop, .run_dir = run_dir.path, .probes = false});
  std::string wrong = WhyNotRun(trained, from.name, kStop, false);
  if (!wrong.empty()) return {wrong};
  const GatheredCheckpoint saved = GatherCheckpoint(NewestCheckpoint(run_dir.path));
  if (!saved.problem.empty()) return {saved.problem};
  // The plan of a rank that trains nothing lies in its checkpoints, and `plan` sees that it trains nothing.
  const TrainingRun idle = runs.Train(to, {.precision = "bf16",
                                           .steps = kStop + 1,
                                           .executor = "idle_executor",
                                           .run_dir = run_dir.path,
                                           .options = {"--accept-changes"},
                                           .probes = false});
  wrong = WhyNotResumed(idle, to.name, kStop, false);  // its own step is no line of metrics
  if (!wrong.empty()) return {wrong};
  const GatheredCheckpoint again = GatherCheckpoint(NewestCheckpoint(run_dir.path));
  SharedResult result = {again.problem};
  if (again.counters.at("step") != kStop + 1) result.wrong += "no checkpoint was saved again\n";
  if (again.tensors.size() != saved.tensors.size()) result.wrong += "it has other tensors\n";
  for (const auto& [key, tensor] : saved.tensors) {
    const auto at = again.tensors.find(key);
    if (at == again.tensors.end() || at->second != tensor) result.wrong += key + " has other bits\n";
  }
  result.figures = std::to_string(saved.tensors.size()) + " tensors of " + std::to_string(saved.ranks) +
                   " ranks have the same bits on " + std::to_string(again.ranks);
  return result;
}

// What runs start from: weights that one rank trained, as a checkpoint and as a file.
struct TrainedWeights {
  std::string wrong, run_dir, file;

  void Make(SharedRuns& runs) {
    if (!file.empty()) return;
    const std::string folder = runs.Folder();
    run_dir = folder + "/run", file = folder + "/probe/parameters_last.safetensors";
    const Layout one = Saving({"one_rank", OneRankOnly()});
    const TrainingRun run = runs.TrainOne(
        one, {.precision = "fp64", .steps = kStop, .run_dir = run_dir, .probe = folder + "/probe"}, "cpu");
    wrong = WhyNotRun(run, "the run that trains the weights", kStop);
  }
};

// As one rank that reads the file: the same weights, and the same curve.
SharedResult JudgeWeights(SharedRuns& runs, TrainedWeights& weights, Layout layout, bool from_checkpoint) {
  weights.Make(runs);
  if (!weights.wrong.empty()) return {weights.wrong};
  layout = Saving(layout);
  const std::vector<std::string> other_samples = Join(layout.training, {"data.seed=99"});
  const std::string from = "initialize.from=";
  layout.training = Join(other_samples, {from + weights.file});
  const TrainingRun& one = runs.One(layout, "fp64", "cpu");
  std::string wrong = WhyNotRun(one, "one rank on the CPU", 3);
  if (!wrong.empty()) return {wrong};
  if (from_checkpoint) layout.training = Join(other_samples, {from + weights.run_dir});
  const TrainingRun run = runs.Train(layout, {.precision = "fp64"});
  wrong = WhyNotRun(run, "the layout", 3);
  if (!wrong.empty()) return {wrong};
  SharedResult result = ResultOf(Compare(run, one, kFp64), false);
  if (run.parameters.size() != one.parameters.size()) result.wrong += "it has other parameters\n";
  for (const auto& [name, tensor] : one.parameters) {
    const auto at = run.parameters.find(name);
    if (at == run.parameters.end() || at->second.values != tensor.values) result.wrong += name + " has other bits\n";
  }
  return result;
}

}  // namespace

std::vector<SharedCase> CheckpointCases() {
  std::vector<SharedCase> cases;
  const std::vector<Layout> layouts = ReshardLayouts();
  for (size_t i = 0; i < layouts.size(); ++i) {
    // Neighbours differ in as much as they can.
    const Layout from = Saving(layouts[i]), to = Saving(layouts[(i + 1) % layouts.size()]);
    const std::string hop = from.name + "-" + to.name;
    cases.push_back({"resume", hop, [=](SharedRuns& runs) { return JudgeResume(runs, from, to); }});
    cases.push_back({"reshard", hop, [=](SharedRuns& runs) { return JudgeReshard(runs, from, to); }});
    cases.push_back({"bits", from.name, [=](SharedRuns& runs) { return JudgeBits(runs, from); }});
  }
  const auto weights = std::make_shared<TrainedWeights>();
  for (const Layout& layout : layouts) {
    for (const bool checkpoint : {false, true}) {
      cases.push_back({"weights", layout.name + (checkpoint ? ".checkpoint" : ".file"),
                       [=](SharedRuns& runs) { return JudgeWeights(runs, *weights, layout, checkpoint); }});
    }
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const SharedCase& a, const SharedCase& b) { return a.group < b.group; });
  return cases;
}

}  // namespace planwright::testing
