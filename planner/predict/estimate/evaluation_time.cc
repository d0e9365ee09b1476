#include "planner/predict/estimate/evaluation_time.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {
namespace {

// So many rounds fill every pipeline that is worth it. What the last of them adds, each further one adds too.
constexpr int64_t kSimulatedRounds = 8;

// A round whose values have names of their own.
void AppendRound(const std::vector<Instruction>& round, int64_t number, std::vector<Instruction>& list) {
  const auto rename = [&](std::string& name) {
    if (!name.empty() && !IsStateName(name)) absl::StrAppend(&name, ".", number);
  };
  for (const Instruction& instruction : round) {
    Instruction& copy = list.emplace_back(instruction);
    for (std::string& name : copy.inputs) rename(name);
    for (std::string& name : copy.frees) rename(name);
    for (Output& output : copy.outputs) rename(output.name);
    for (ExchangePart& part : copy.parts) rename(part.value), rename(part.sizes);
  }
}

// The time of so many rounds and of what follows them, as if they were a step.
double TimeRounds(const Plan& plan, const Rates& rates, int64_t rounds) {
  Plan evaluation = plan;
  for (Role& role : evaluation.roles) {
    role.step.clear();
    for (int64_t i = 0; i < rounds; ++i) AppendRound(role.evaluate, i, role.step);
    role.step.insert(role.step.end(), role.score.begin(), role.score.end());
  }
  return StepLength(evaluation, rates);
}

}  // namespace

double TimeEvaluation(const Plan& plan) { return TimeEvaluation(plan, RatesOf(plan)); }

double TimeEvaluation(const Plan& plan, const Rates& rates) {
  const int64_t rounds = plan.evaluation.rounds();
  if (rounds == 0 || !rates.known()) return 0;
  const double some = TimeRounds(plan, rates, std::min(rounds, kSimulatedRounds));
  if (rounds <= kSimulatedRounds) return some;
  return some + static_cast<double>(rounds - kSimulatedRounds) * (some - TimeRounds(plan, rates, kSimulatedRounds - 1));
}

int64_t CountEvaluations(const Plan& plan) {
  if (plan.evaluation.empty()) return 0;
  const int64_t samples = plan.budget.steps * plan.budget.global_samples, every = plan.evaluation.every_samples;
  return 1 + samples / every + (samples % every != 0 ? 1 : 0);
}

}  // namespace planwright
