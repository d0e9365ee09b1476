#include "tests/gpu/shared/shared_runs.h"

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "tests/support/one_rank_nodes.h"

namespace planwright::testing {
namespace {

// A rank that hangs shall not take the time of the others: a GPU is often lent for minutes. CPUs may be busy.
constexpr char kGpuTimeoutSeconds[] = "240";

std::string KeyOf(const Layout& layout, const std::string& more) {
  std::string key = more + " " + layout.recipe;
  for (const std::string& word : layout.training) key += " " + word;
  return key;
}

std::string EndOf(const std::string& output) {
  constexpr size_t kMost = 4000;
  return output.size() <= kMost ? output : "...\n" + output.substr(output.find('\n', output.size() - kMost) + 1);
}

}  // namespace

SharedRuns::SharedRuns(std::string binaries, std::string source, std::string device)
    : binaries_(std::move(binaries)), source_(std::move(source)), device_(std::move(device)) {
  std::string pattern = (std::filesystem::temp_directory_path() / "planwright_shared_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder " + pattern);
  folder_ = pattern;
}

SharedRuns::~SharedRuns() { std::filesystem::remove_all(folder_); }

std::string SharedRuns::Folder() {
  const std::string folder = folder_ + "/" + std::to_string(folders_++);
  std::filesystem::create_directories(folder);
  return folder;
}

LaunchOptions SharedRuns::OptionsFor(const Layout& layout, const Options& options) const {
  setenv("PLANWRIGHT_FAULT", options.fault.c_str(), 1);
  if (device_ == "cuda") setenv("PLANWRIGHT_TIMEOUT_SECONDS", kGpuTimeoutSeconds, 0);
  std::vector<std::string> overrides = Join({"precision.params=" + options.precision}, layout.training);
  return {.recipe = source_ + "/" + layout.recipe,
          .overrides = std::move(overrides),
          .steps = options.steps,
          .executor = options.executor,
          .binaries = binaries_,
          .run_dir = options.run_dir,
          .probe = options.probe,
          .options = options.options,
          .probes = options.probes};
}

TrainingRun SharedRuns::Train(const Layout& layout, const Options& options) const {
  LaunchOptions launch = OptionsFor(layout, options);
  launch.overrides = Join(launch.overrides, layout.overrides);
  launch.device = device_;
  launch.nodes = RanksOf(layout);
  return Launch(launch);
}

TrainingRun SharedRuns::TrainOne(const Layout& layout, const Options& options, const std::string& device) const {
  LaunchOptions launch = OptionsFor(layout, options);
  launch.overrides = Join(launch.overrides, layout.one_rank);
  launch.device = device;
  return Launch(launch);
}

const TrainingRun& SharedRuns::One(const Layout& layout, const std::string& precision, const std::string& device,
                                   int steps) {
  const auto [it, fresh] = ones_.try_emplace(KeyOf(layout, device + " " + precision + " " + std::to_string(steps)));
  if (fresh) it->second = TrainOne(layout, {.precision = precision, .steps = steps}, device);
  return it->second;
}

const SharedRuns::Recorded& SharedRuns::RecordedOne(const Layout& layout) {
  const auto [it, fresh] = recorded_.try_emplace(KeyOf(layout, ""));
  Recorded& recorded = it->second;
  if (!fresh) return recorded;
  recorded.choices = Folder() + "/choices";
  Options options = {.precision = "bf16", .options = {"--record-routing", recorded.choices}};
  recorded.run = TrainOne(layout, options, device_);
  if (recorded.run.output.find("no module of this plan has experts") != std::string::npos) {
    recorded.choices.clear();
    options.options.clear();
    recorded.run = TrainOne(layout, options, device_);
  }
  return recorded;
}

int SharedRuns::RanksOf(const Layout& layout) const {
  std::string command =
      Quoted(binaries_ + "/plan") + " show " + Quoted(source_ + "/" + layout.recipe) + " ranks --json";
  for (const std::string& word : Join(layout.training, layout.overrides)) command += " " + Quoted(word);
  FILE* pipe = popen((command + " 2>/dev/null").c_str(), "r");
  std::string text;
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) text += static_cast<char>(c);
  pclose(pipe);
  const nlohmann::json ranks = nlohmann::json::parse(text, nullptr, false);
  // A recipe that is refused: the launch says why.
  return ranks.is_object() ? ranks.value("world_size", 1) : 1;
}

std::string WhyNotRun(const TrainingRun& run, const std::string& what, size_t steps, bool probes) {
  if (run.exit_code == 0 && run.steps.size() == steps)
    return probes && run.gradients_last.empty() ? what + " left no gradients" : "";
  return what + " did not run: exit status " + std::to_string(run.exit_code) + " after " +
         std::to_string(run.steps.size()) + " of " + std::to_string(steps) + " steps\n" + EndOf(run.output);
}

SharedResult ResultOf(const Comparison& comparison, bool may_part) {
  constexpr size_t kMostLines = 10;
  SharedResult result;
  for (size_t i = 0; i < std::min(kMostLines, comparison.differences.size()); ++i)
    result.wrong += comparison.differences[i] + "\n";
  // If the first step chooses other experts, nothing is compared.
  if (comparison.parted_at && (*comparison.parted_at == 0 || !may_part))
    result.wrong += "other experts are chosen in step " + std::to_string(*comparison.parted_at + 1) + "\n";
  result.figures = "loss " + Scientific(comparison.worst_loss) + ", norm " + Scientific(comparison.worst_norm) +
                   ", gradients " + Scientific(comparison.worst_gradient_first) + " first, " +
                   (comparison.parted_at ? "parted before the last" : Scientific(comparison.worst_gradient_last)) +
                   (comparison.parted_at ? "" : " last");
  return result;
}

std::string Scientific(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1e", value);
  return text;
}

}  // namespace planwright::testing
