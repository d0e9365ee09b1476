#include "tests/end_to_end/kill_cases.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "planner/plan/link/linked_program.h"

namespace planwright::testing {
namespace {

// The phase of an instruction of a step.
std::string PhaseOf(const LinkedProgram& program, const LinkedEntry& entry, bool calls_are_over) {
  const std::vector<LinkedCall>& calls = program.calls();
  if (const LinkedCall* call = &calls[entry.call]; call->parent >= 0) {
    while (calls[call->parent].parent >= 0) call = &calls[call->parent];
    return call->block->block->name.ends_with(".backward") ? "backward" : "forward";
  }
  const OpKind kind = entry.instruction->source->kind;
  if (kind == OpKind::kExchange || kind == OpKind::kBroadcast) return "bridge";
  if (!calls_are_over) return "data";
  return entry.instruction->op_class == OpClass::kCommunication ? "reduce" : "optimizer";
}

// The fail points of one phase of a role, by kind of instruction.
struct Points {
  std::string list;
  std::vector<int64_t> steps;
  std::vector<std::string> kinds;  // in the order in which they come first; one empty kind: no instruction
  std::map<std::string, std::vector<int64_t>> numbers;

  void Add(const std::string& kind, int64_t number) {
    if (!numbers.contains(kind)) kinds.push_back(kind);
    numbers[kind].push_back(number);
  }
};

std::map<std::string, Points> PointsOf(const LinkedProgram& program) {
  std::map<std::string, Points> phases;
  const auto kind = [&](size_t i) { return std::string(OpName(program.entries()[i].instruction->source->kind)); };
  const LinkedProgram::Range step = program.step();
  size_t after_calls = step.first;
  for (size_t i = step.first; i < step.end; ++i) {
    if (program.calls()[program.entries()[i].call].parent >= 0) after_calls = i + 1;
  }
  for (size_t i = step.first; i < step.end; ++i) {
    Points& points = phases[PhaseOf(program, program.entries()[i], i >= after_calls)];
    points.list = "step";
    points.steps = {3, 4, 2, 1};
    points.Add(kind(i), static_cast<int64_t>(i - step.first));
  }
  const auto whole_list = [&](const char* phase, const char* list, LinkedProgram::Range range,
                              const std::vector<int64_t>& steps) {
    Points& points = phases[phase];
    points.list = list;
    points.steps = steps;
    for (size_t i = range.first; i < range.end; ++i) points.Add(kind(i), static_cast<int64_t>(i - range.first));
  };
  whole_list("setup", "setup", program.setup(), {1});
  whole_list("load", "resume", program.resume(), {1});
  whole_list("snapshot", "save", program.save(), {4, 2});
  for (const char* phase : {"write", "publish"}) phases[phase] = {phase, {4, 2}, {""}, {{"", {-1}}}};
  phases["teardown"] = {"teardown", {4}, {""}, {{"", {-1}}}};
  return phases;
}

}  // namespace

std::vector<std::string> KillPhases() {
  return {"setup",  "load",      "data",     "forward", "bridge",  "backward",
          "reduce", "optimizer", "snapshot", "write",   "publish", "teardown"};
}

std::vector<std::string> KillFaults() { return {"SIGKILL", "SIGSTOP", "SIGSEGV", "exit", "exception"}; }

std::string KillCase::Name() const {
  return role + " " + phase + " " + fault + " " + moment + " (rank " + std::to_string(rank) + ", step " +
         std::to_string(step) + (kind.empty() ? "" : ", " + std::to_string(number) + " " + kind) + ")";
}

std::vector<KillCase> KillCases(const Plan& plan) {
  std::vector<KillCase> cases;
  LinkedBlocks blocks(plan);
  const std::vector<std::string> faults = KillFaults(), moments = {"before", "during", "after"};
  const size_t of_phase = faults.size() * moments.size();  // cases of one role and phase
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role& role = plan.roles[r];
    const LinkedProgram program(blocks, role);
    const std::map<std::string, Points> points = PointsOf(program);
    size_t p = 0;
    for (const std::string& phase : KillPhases()) {
      ++p;
      const Points& at = points.at(phase);  // each role has each phase
      for (size_t i = 0; i < of_phase; ++i) {
        // The next role goes on with the kinds where this one ended.
        const size_t turn = r * of_phase + i;
        const std::string& kind = at.kinds[turn % at.kinds.size()];
        const std::vector<int64_t>& numbers = at.numbers.at(kind);
        cases.push_back({.role = role.name,
                         .phase = phase,
                         .fault = faults[i / moments.size()],
                         .moment = moments[i % moments.size()],
                         .rank = role.ranks.front().first,
                         .list = at.list,
                         .kind = kind,
                         .step = at.steps[i % at.steps.size()],
                         .number = numbers[turn * 7919 % numbers.size()],
                         .resumes = i == (11 * r + 4 * p) % of_phase});
      }
    }
  }
  return cases;
}

std::vector<KillCase> SampleOf(std::vector<KillCase> cases, size_t count) {
  std::mt19937 random(20251);
  for (size_t i = cases.size(); i > 1; --i) std::swap(cases[i - 1], cases[random() % i]);
  std::vector<KillCase> sample;
  std::map<std::string, int> used;  // phases, faults, moments and roles
  std::set<std::string> resumed;    // phases
  while (sample.size() < count && !cases.empty()) {
    const auto worth = [&](const KillCase& one) {
      const int more = 12 * used[one.phase] + 5 * used[one.fault] + 3 * used[one.moment] + 4 * used[one.role];
      return more - (one.resumes && !resumed.contains(one.phase) ? 1000 : 0);
    };
    size_t best = 0;
    for (size_t i = 1; i < cases.size(); ++i) {
      if (worth(cases[i]) < worth(cases[best])) best = i;
    }
    const KillCase& taken = cases[best];
    for (const std::string& text : {taken.phase, taken.fault, taken.moment, taken.role}) ++used[text];
    if (taken.resumes) resumed.insert(taken.phase);
    sample.push_back(taken);
    cases.erase(cases.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return sample;
}

}  // namespace planwright::testing
