// Lets one rank of a run on GPUs throw, be killed, be stopped, launch a kernel that never ends or one that breaks the
// device, ask for more memory than there is, or leave out a collective; each rank in turn. Prints how each run ended.
// The processes are real: `plan launch
// --local --device cuda` with failing_executor.
//
//   gpu_faults BINARIES RECIPE RANKS [FAULT[@STEP] ...]
//
// RANKS: 1 or 2, each on a GPU of its own; default: all faults.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/end_to_end/faulty_run.h"

namespace planwright::testing {
namespace {

// The time-out of the runs. Healthy instructions of the tiny model take milliseconds, joining a group a second or two.
constexpr int kTimeoutSeconds = 6;
constexpr double kLate = 2.0;  // a hang is noticed this long after the time-out at the latest
constexpr double kGone = 5.0;  // and everything is gone this long after anything was noticed

std::string Judge(const FaultyRun& run, const Aftermath& after) {
  const std::string wrong = WhatIsWrong(run, after);
  if (!wrong.empty()) return wrong;
  const bool hang = run.fault == "stop" || run.fault == "endless";
  if (run.fault != "skip" && *after.noticed > (hang ? kTimeoutSeconds : 0) + kLate) return "it was noticed too late";
  if (*after.gone > kGone) return "it took too long until everything was gone";
  return "";
}

bool Try(FaultyRun run) {
  const Aftermath after = RunWithFault(run);
  const std::string wrong = Judge(run, after);
  std::printf("%s  %d rank%s, %-7s in step %d of rank %d", wrong.empty() ? "PASS" : "FAIL", run.ranks,
              run.ranks == 1 ? "" : "s", run.fault.c_str(), run.fault_step, run.fault_rank);
  if (after.noticed && run.fault != "skip") std::printf("  noticed after %5.2f s", *after.noticed);
  if (after.gone) std::printf("  gone %4.2f s later", *after.gone);
  if (after.outcome.is_object() && after.outcome.contains("rank")) {
    std::printf("  exit %d: %s, at %s", after.status, after.outcome.at("cause").dump().c_str(),
                after.outcome.at("instruction").dump().c_str());
    if (run.fault == "device") std::printf(", after %s", after.outcome.at("last_done").dump().c_str());
    if (run.fault == "skip") std::printf(", %s", after.outcome.at("others").dump().c_str());
  }
  std::printf("\n");
  if (!wrong.empty())
    std::printf("      %s\n%s\n%s\n", wrong.c_str(), after.outcome.dump(1).c_str(), after.output.c_str());
  std::fflush(stdout);
  return wrong.empty();
}

int Main(int argc, char** argv) {
  const int ranks = argc > 3 ? std::atoi(argv[3]) : 0;
  if (ranks != 1 && ranks != 2) {
    std::fprintf(stderr, "usage: gpu_faults BINARIES RECIPE 1|2 [FAULT ...]\n");
    return 2;
  }
  std::vector<std::string> faults(argv + 4, argv + argc);
  if (faults.empty()) faults = {"throw", "kill", "stop", "endless", "device", "refused"};
  // With two ranks also in the first step, where NCCL has not connected them yet, and with ranks that wait for each
  // other.
  if (argc == 4 && ranks == 2) faults.insert(faults.end(), {"throw@1", "endless@1", "skip"});
  bool all = true;
  for (const std::string& fault : faults) {
    const size_t at = fault.find('@');
    for (int rank = 0; rank < ranks; ++rank) {
      all &= Try({.binaries = argv[1],
                  .recipe = argv[2],
                  .device = "cuda",
                  .ranks = ranks,
                  .fault = fault.substr(0, at),
                  .fault_rank = rank,
                  .fault_step = at == std::string::npos ? 2 : std::atoi(fault.c_str() + at + 1),
                  .timeout_seconds = kTimeoutSeconds,
                  .patience_seconds = 90});
    }
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace planwright::testing

int main(int argc, char** argv) { return planwright::testing::Main(argc, argv); }
