// Cases of the kill matrix on two GPUs over NCCL (tests/end_to_end/kill_cases.h): one rank fails in a phase of the run,
// the launcher names it and ends everything, and the run goes on as if nothing had happened. Prints a line for each
// case.
//
//   gpu_kills BINARIES RECIPE CASES [TEXT]     CASES of a fixed sample, with each phase; those with TEXT in their name
#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/end_to_end/kill_cases.h"
#include "tests/end_to_end/kill_runs.h"

namespace planwright::testing {
namespace {

bool Passes(const KillRuns& runs, const KillCase& one) {
  KillAftermath after;
  const std::string wrong = runs.WhatIsWrong(one, after);
  std::printf("%s  %s%s: noticed after %.2f s, gone after %.2f s\n", wrong.empty() ? "PASS" : "FAIL",
              one.Name().c_str(), one.resumes ? ", resumed" : "", after.noticed.value_or(-1), after.gone.value_or(-1));
  if (!wrong.empty())
    std::printf("      %s\n%s\n%s\n", wrong.c_str(), after.outcome.dump(1).c_str(), after.output.c_str());
  std::fflush(stdout);
  return wrong.empty();
}

int Main(int argc, char** argv) {
  const size_t count = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 0;
  if (count == 0 || argc > 5) {
    std::fprintf(stderr, "usage: gpu_kills BINARIES RECIPE CASES [TEXT]\n");
    return 2;
  }
  const std::string only = argc > 4 ? argv[4] : "";
  const KillRuns runs(TwoGpus(argv[1], argv[2]));
  if (!runs.problem().empty()) {
    std::fprintf(stderr, "%s\n", runs.problem().c_str());
    return 1;
  }
  size_t passed = 0, ran = 0, resumed = 0;
  std::set<std::string> phases;
  for (const KillCase& one : SampleOf(KillCases(runs.plan()), count)) {
    if (one.Name().find(only) == std::string::npos) continue;
    ++ran;
    passed += Passes(runs, one);
    resumed += one.resumes;
    phases.insert(one.phase);
  }
  std::printf("%zu of %zu cases passed, in %zu of %zu phases, %zu resumed\n", passed, ran, phases.size(),
              KillPhases().size(), resumed);
  return passed == ran && ran > 0 ? 0 : 1;
}

}  // namespace
}  // namespace planwright::testing

int main(int argc, char** argv) { return planwright::testing::Main(argc, argv); }
