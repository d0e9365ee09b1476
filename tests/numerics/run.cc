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

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;

std::string FreshFolder() {
  std::string pattern = (fs::temp_directory_path() / "planwright_run_XXXXXX").string();
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  return pattern;
}

// Arguments are quoted simply: paths and overrides of these tests contain no quotes.
std::string Quoted(const std::string& argument) { return "'" + argument + "'"; }

int RunCommand(const std::string& command, std::string& output) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), n);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<StepMetrics> ReadMetrics(const std::string& path) {
  std::vector<StepMetrics> steps;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    StepMetrics step;
    step.loss = json.at("loss").is_null() ? std::nan("") : json.at("loss").get<double>();
    step.grad_norm = json.at("grad_norm").is_null() ? std::nan("") : json.at("grad_norm").get<double>();
    step.learning_rate = json.at("learning_rate");
    step.aux_loss = json.at("aux_loss").is_null() ? 0 : json.at("aux_loss").get<double>();
    step.skipped = json.at("skipped");
    step.routing = json.at("routing").dump();
    for (const auto& [name, norm] : json.at("module_grad_norms").items()) {
      step.module_grad_norms[name] = norm.is_null() ? std::nan("") : norm.get<double>();
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

double Relative(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
  return b == 0 ? std::abs(a) : std::abs(a - b) / std::abs(b);
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
  run.directory = folder + "/run";
  const std::string bin =
      (options.binaries.empty() ? std::string(PLANWRIGHT_BINARY_DIR) + "/bin" : options.binaries) + "/";
  std::string command = Quoted(bin + "plan") + " launch " + Quoted(fs::path(PLANWRIGHT_SOURCE_DIR) / options.recipe);
  for (const std::string& override : options.overrides) command += " " + Quoted(override);
  command += " --local --run-dir " + Quoted(run.directory) + " --probe " + Quoted(folder + "/probe");
  if (options.steps > 0) command += " --steps " + std::to_string(options.steps);
  if (!options.device.empty()) command += " --device " + options.device;
  if (!options.executor.empty()) command += " --executor " + Quoted(bin + options.executor);
  run.exit_code = RunCommand(command, run.output);
  if (run.exit_code == 0) {
    run.steps = ReadMetrics(run.directory + "/metrics.jsonl");
    run.parameters = ReadTensors(folder + "/probe/parameters.safetensors");
    run.gradients_first = ReadTensors(folder + "/probe/gradients_first.safetensors");
    run.gradients_last = ReadTensors(folder + "/probe/gradients_last.safetensors");
    run.values_first = ReadTensors(folder + "/probe/values_first.safetensors");
    run.values_last = ReadTensors(folder + "/probe/values_last.safetensors");
  }
  fs::remove_all(folder);
  return run;
}

Comparison Compare(const TrainingRun& run, const TrainingRun& reference, double tolerance) {
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
    for (const auto& [module, norm] : b.module_grad_norms) {
      const auto it = a.module_grad_norms.find(module);
      const double off = it == a.module_grad_norms.end() ? INFINITY : Relative(it->second, norm);
      result.worst_norm = std::max(result.worst_norm, off);
      if (!(off <= tolerance))
        result.differences.push_back(at + "gradient norm of " + module + " is off by " + std::to_string(off));
    }
  }
  if (result.parted_at != size_t{0}) {
    result.worst_gradient_first =
        WorstGradient("first step", run.gradients_first, reference.gradients_first, tolerance, result.differences);
  }
  if (!result.parted_at) {
    result.worst_gradient_last =
        WorstGradient("last step", run.gradients_last, reference.gradients_last, tolerance, result.differences);
  }
  return result;
}

}  // namespace planwright::testing
