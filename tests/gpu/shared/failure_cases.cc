// Whether a run in which a rank dies ends by itself, says which rank, why and where, and goes on as if nothing had
// happened.
#include <stdlib.h>

#include <cstdio>
#include <memory>
#include <regex>

#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/kill_cases.h"
#include "tests/end_to_end/kill_runs.h"
#include "tests/gpu/shared/shared_cases.h"

namespace planwright::testing {
namespace {

constexpr size_t kKills = 60;  // of the 720 cases of the matrix, with each phase, fault, moment and role

// The runs that the cases need, made once.
struct Kills {
  std::unique_ptr<KillRuns> runs;
  std::vector<KillCase> sample;

  std::string Make(const SharedRuns& shared) {
    if (!runs) {
      runs = std::make_unique<KillRuns>(
          FourNodes(shared.binaries(), shared.source() + "/" + kTinyRecipe, shared.device()));
      if (runs->problem().empty()) sample = SampleOf(KillCases(runs->plan()), kKills);
    }
    return runs->problem();
  }
};

std::string Seconds(const std::optional<double>& seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f s", seconds.value_or(-1));
  return text;
}

SharedResult JudgeKill(const SharedRuns& shared, Kills& kills, size_t number) {
  // Each of these runs has variables of its own.
  unsetenv("PLANWRIGHT_FAULT");
  unsetenv("PLANWRIGHT_TIMEOUT_SECONDS");
  const std::string problem = kills.Make(shared);
  if (!problem.empty()) return {problem};
  const KillCase& one = kills.sample.at(number);
  KillAftermath after;
  SharedResult result = {kills.runs->WhatIsWrong(one, after)};
  if (!result.wrong.empty()) result.wrong += "\n" + after.outcome.dump(1) + "\n" + after.output;
  result.figures = one.Name() + (one.resumes ? ", resumed" : "") + ": noticed after " + Seconds(after.noticed) +
                   ", gone after " + Seconds(after.gone);
  return result;
}

// More rows of experts come to a rank than memory is planned for: the run stops, and nothing is dropped.
SharedResult JudgeCapacity(const SharedRuns& runs, const std::vector<std::string>& language, bool room) {
  const std::string imbalance = std::string("models.hybrid_moe_tiny.moe.imbalance=") + (room ? "4.0" : "1.0");
  const Layout layout = {"", Join(EncoderOn(1, 1), language), {imbalance}};
  const TrainingRun run = runs.Train(layout, {.precision = "fp32", .probes = false});
  if (room) return {WhyNotRun(run, "the run with room for its rows", 3, false), "status 0"};
  SharedResult result = {"", "status " + std::to_string(run.exit_code)};
  if (run.exit_code != kExitCapacity) result.wrong = "exit status " + std::to_string(run.exit_code) + "\n" + run.output;
  const std::regex said("rank [1-4] got more expert rows than memory is planned for");
  if (!std::regex_search(run.output, said)) result.wrong += "nobody says which rank got too many rows\n" + run.output;
  return result;
}

}  // namespace

std::vector<SharedCase> FailureCases() {
  std::vector<SharedCase> cases;
  const auto kills = std::make_shared<Kills>();
  for (size_t number = 0; number < kKills; ++number) {
    char name[8];
    std::snprintf(name, sizeof name, "%02zu", number + 1);
    cases.push_back({"kills", name, [=](SharedRuns& runs) { return JudgeKill(runs, *kills, number); }});
  }
  const auto capacity = [&](const char* name, const std::vector<std::string>& language, bool room) {
    cases.push_back({"capacity", name, [=](SharedRuns& runs) { return JudgeCapacity(runs, language, room); }});
  };
  capacity("tp2_ep4", LanguageOn(1, 4, 2, 4), false);
  capacity("ep2_expert_tp2", Join(LanguageOn(1, 4, 1, 2), Parallel("language", {{"expert_tp", 2}})), false);
  capacity("gathered", Join(LanguageOn(1, 4, 2, 4), {"modules.language.parallel.dispatch=all_gather"}), false);
  capacity("room", LanguageOn(1, 4, 2, 4), true);
  return cases;
}

}  // namespace planwright::testing
