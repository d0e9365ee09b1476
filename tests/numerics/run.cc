#include "tests/numerics/run.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/folders.h"
#include "tests/support/one_rank_nodes.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

std::string FreshFolder() {
  std::string pattern = (fs::temp_directory_path() / "planwright_run_XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  return pattern;
}

int RunCommand(const std::string& command, std::string& output) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), n);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::map<std::string, double> NumbersByName(const nlohmann::json& json) {
  std::map<std::string, double> numbers;
  for (const auto& [name, number] : json.items())
    numbers[name] = number.is_null() ? std::nan("") : number.get<double>();
  return numbers;
}

double LossIn(const nlohmann::json& json) {
  return json.at("loss").is_null() ? std::nan("") : json.at("loss").get<double>();
}

EvaluationMetrics EvaluationOf(const nlohmann::json& json) {
  EvaluationMetrics evaluation{.step = json.at("step")};
  for (const auto& [name, set] : json.at("evaluation").items()) {
    evaluation.losses[name] = LossIn(set);
    evaluation.tokens[name] = set.at("tokens");
    for (const auto& [source, mean] : set.at("sources").items()) {
      evaluation.losses[name + "/" + source] = LossIn(mean);
      evaluation.tokens[name + "/" + source] = mean.at("tokens");
    }
  }
  return evaluation;
}

std::vector<StepMetrics> ReadMetrics(const std::string& path, std::vector<EvaluationMetrics>& evaluations) {
  std::vector<StepMetrics> steps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json.contains("evaluation")) {
      evaluations.push_back(EvaluationOf(json));
      continue;
    }
    StepMetrics step;
    step.loss = json.at("loss").is_null() ? std::nan("") : json.at("loss").get<double>();
    step.grad_norm = json.at("grad_norm").is_null() ? std::nan("") : json.at("grad_norm").get<double>();
    step.learning_rate = json.at("learning_rate");
    step.aux_loss = json.at("aux_loss").is_null() ? 0 : json.at("aux_loss").get<double>();
    step.skipped = json.at("skipped");
    step.routing = json.at("routing").dump();
    step.module_grad_norms = NumbersByName(json.at("module_grad_norms"));
    step.bridge_mean_square = NumbersByName(json.at("bridge_mean_square"));
    if (json.contains("source_loss")) step.source_loss = NumbersByName(json.at("source_loss"));
    steps.push_back(std::move(step));
  }
  return steps;
}

// null in both, a loss of no tokens or a mean over no rows, is the same.
double Relative(double a, double b) {
  if (std::isnan(a) && std::isnan(b)) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
  return b == 0 ? std::abs(a) : std::abs(a - b) / std::abs(b);
}

// The largest difference of the numbers of one step. Adds to `differences` those beyond the tolerance.
double WorstNumber(const std::string& what, const std::map<std::string, double>& run,
                   const std::map<std::string, double>& reference, double tolerance,
                   std::vector<std::string>& differences) {
  double worst = 0;
  for (const auto& [name, number] : reference) {
    const auto it = run.find(name);
    const double off = it == run.end() ? INFINITY : Relative(it->second, number);
    worst = std::max(worst, off);
    if (!(off <= tolerance)) differences.push_back(what + name + " is off by " + std::to_string(off));
  }
  return worst;
}

double WorstGradient(const char* when, const Tensors& run, const Tensors& reference, double tolerance,
                     std::vector<std::string>& differences) {
  double worst = 0;
  for (const auto& [name, expected] : reference) {
    auto it = run.find(name);
    if (it == run.end()) {
      differences.push_back(std::string(when) + " has no gradient of " + name);
      worst = INFINITY;
      continue;
    }
    const double distance = Distance(it->second, expected);
    worst = std::max(worst, distance);
    if (!(distance <= tolerance))
      differences.push_back(std::string(when) + " gradient of " + name + " is off by " + std::to_string(distance));
  }
  if (run.size() != reference.size()) differences.push_back(std::string(when) + " has other gradients");
  return worst;
}

}  // namespace

TrainingRun Launch(const LaunchOptions& options) {
  TrainingRun run;
  const std::string folder = FreshFolder();
  run.directory = options.run_dir.empty() ? folder + "/run" : options.run_dir;
  const std::string probe = options.probe.empty() ? folder + "/probe" : options.probe;
  const std::string bin = (options.binaries.empty() ? InBuild("bin") : options.binaries) + "/";
  std::string command = Quoted(bin + "plan") + " launch " + Quoted(fs::path(InSource()) / options.recipe);
  for (const std::string& override : options.overrides) command += " " + Quoted(override);
  if (options.nodes > 0) {
    for (const std::string& word : OneRankNodes(options.nodes)) command += " " + word;
  } else {
    command += " --local --yes";
  }
  command += " --run-dir " + Quoted(run.directory);
  if (options.probes) command += " --probe " + Quoted(probe);
  if (options.steps > 0) command += " --steps " + std::to_string(options.steps);
  if (!options.device.empty()) command += " --device " + options.device;
  for (const std::string& option : options.options) command += " " + option;
  if (!options.executor.empty()) command += " --executor " + Quoted(bin + options.executor);
  if (options.nodes > 0) command = WithAgents(command, Quoted(bin + "plan"), run.directory, options.nodes);
  run.exit_code = RunCommand(command, run.output);
  if (run.exit_code == 0) run.steps = ReadMetrics(run.directory + "/metrics.jsonl", run.evaluations);
  if (run.exit_code == 0 && options.probes) {
    run.parameters = ReadTensors(probe + "/parameters.safetensors");
    run.parameters_last = ReadTensors(probe + "/parameters_last.safetensors");
    run.gradients_first = ReadTensors(probe + "/gradients_first.safetensors");
    run.gradients_last = ReadTensors(probe + "/gradients_last.safetensors");
    run.values_first = ReadTensors(probe + "/values_first.safetensors");
    run.values_last = ReadTensors(probe + "/values_last.safetensors");
  }
  fs::remove_all(folder);
  return run;
}

std::vector<std::string> CompareEvaluations(const TrainingRun& run, const TrainingRun& reference, double tolerance) {
  std::vector<std::string> differences;
  if (run.evaluations.size() != reference.evaluations.size()) return {"another number of evaluations"};
  for (size_t i = 0; i < run.evaluations.size(); ++i) {
    const EvaluationMetrics &a = run.evaluations[i], &b = reference.evaluations[i];
    const std::string at = "evaluation of step " + std::to_string(b.step) + ": ";
    if (a.step != b.step) differences.push_back(at + "is of step " + std::to_string(a.step));
    if (a.tokens != b.tokens) differences.push_back(at + "other tokens");
    WorstNumber(at, a.losses, b.losses, tolerance, differences);
  }
  return differences;
}

Comparison Compare(const TrainingRun& run, const TrainingRun& reference, double tolerance) {
  return Compare(run, reference, tolerance, tolerance);
}

Comparison Compare(const TrainingRun& run, const TrainingRun& reference, double tolerance, double last_gradients) {
  Comparison result;
  if (run.steps.size() != reference.steps.size()) result.differences.push_back("another number of steps");
  const size_t steps = std::min(run.steps.size(), reference.steps.size());
  for (size_t i = 0; i < steps; ++i) {
    const StepMetrics& a = run.steps[i];
    const StepMetrics& b = reference.steps[i];
    if (a.routing != b.routing) {
      result.parted_at = i;
      break;
    }
    const std::string at = "step " + std::to_string(i + 1) + ": ";
    const double loss = Relative(a.loss, b.loss);
    result.worst_loss = std::max(result.worst_loss, loss);
    if (!(loss <= tolerance)) result.differences.push_back(at + "loss is off by " + std::to_string(loss));
    const double aux = Relative(a.aux_loss, b.aux_loss);
    result.worst_loss = std::max(result.worst_loss, aux);
    if (!(aux <= tolerance)) result.differences.push_back(at + "auxiliary loss is off by " + std::to_string(aux));
    result.worst_norm = std::max(result.worst_norm, WorstNumber(at + "gradient norm of ", a.module_grad_norms,
                                                                b.module_grad_norms, tolerance, result.differences));
    result.worst_bridge = std::max(
        result.worst_bridge,
        WorstNumber(at + "mean square of ", a.bridge_mean_square, b.bridge_mean_square, tolerance, result.differences));
  }
  if (result.parted_at != size_t{0}) {
    result.worst_gradient_first =
        WorstGradient("first step", run.gradients_first, reference.gradients_first, tolerance, result.differences);
  }
  if (!result.parted_at) {
    result.worst_gradient_last =
        WorstGradient("last step", run.gradients_last, reference.gradients_last, last_gradients, result.differences);
  }
  return result;
}

}  // namespace planwright::testing
