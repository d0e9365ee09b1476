// What a step costs where all ranks share a device, beside how often they communicate. Judges no time: it says what to
// look for if steps are slow.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "planner/plan/link/linked_program.h"
#include "planner/plan/plan_json.h"
#include "tests/gpu/shared/shared_cases.h"

namespace planwright::testing {
namespace {

constexpr int kSteps = 4;  // the last of them counts: NCCL connects ranks when they first meet

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// How often the rank that communicates most does so in a step.
size_t MostCommunications(const Plan& plan) {
  size_t most = 0;
  LinkedBlocks blocks(plan);
  for (const Role& role : plan.roles) {
    const LinkedProgram program(blocks, role);
    size_t count = 0;
    for (size_t i = program.step().first; i < program.step().end; ++i)
      count += program.entries()[i].instruction->op_class == OpClass::kCommunication;
    most = std::max(most, count);
  }
  return most;
}

SharedResult Measure(SharedRuns& runs, const Layout& layout) {
  const std::string run_dir = runs.Folder() + "/run";
  const TrainingRun run =
      runs.Train(layout, {.precision = "fp32", .steps = kSteps, .run_dir = run_dir, .probes = false});
  const std::string wrong = WhyNotRun(run, "the layout", kSteps, false);
  if (!wrong.empty()) return {wrong};
  std::ifstream metrics(run_dir + "/metrics.jsonl");
  double seconds = 0;
  for (std::string line; std::getline(metrics, line);) seconds = nlohmann::json::parse(line).at("step_seconds");
  const absl::StatusOr<Plan> plan = ReadPlan(TextOf(run_dir + "/plan.json"));
  if (!plan.ok()) return {std::string(plan.status().message())};
  const size_t communications = MostCommunications(*plan);
  char text[160];
  std::snprintf(text, sizeof text, "%d ranks: a step takes %.3f s, with %zu communications of a rank %.2f ms for each",
                plan->world_size, seconds, communications, 1e3 * seconds / static_cast<double>(communications));
  return {"", text};
}

}  // namespace

std::vector<SharedCase> TimeCases() {
  std::vector<SharedCase> cases;
  const auto add = [&](const Layout& layout) {
    cases.push_back({"times", layout.name, [layout](SharedRuns& runs) { return Measure(runs, layout); }});
  };
  add({"dp2", LanguageOn(0, 2, 1, 1), {}, kTextRecipe, {}});
  add({"tp2", LanguageOn(0, 2, 2, 2), {}, kTextRecipe, {}});
  add({"ep2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2))});
  add({"ep4_tp2", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4))});
  add({"ep4_tp2_dp2", Join(EncoderOn(1, 1), LanguageOn(1, 8, 2, 4))});
  return cases;
}

}  // namespace planwright::testing
