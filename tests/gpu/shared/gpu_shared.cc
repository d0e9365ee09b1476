// Tries what ranks that share one device can show: one GPU over NCCL, or this machine's CPUs over Gloo.
//
//   gpu_shared --list                        the names of all cases, GROUP/NAME, one a line
//   gpu_shared BINARIES SOURCE cuda|cpu      reads names, one a line, and tries each: a line `PASS GROUP/NAME FIGURES`,
//                                            or what is wrong and a line `FAIL GROUP/NAME FIGURES`
//
// BINARIES: the folder of plan and the executors. SOURCE: the clone with the recipes. tests/gpu/verify_on_gpus --share
// deals the cases to several of these programs and sums up.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <string>

#include "tests/gpu/shared/shared_cases.h"

namespace planwright::testing {

std::vector<SharedCase> SharedCases() {
  std::vector<SharedCase> cases;
  for (auto* of : {TimeCases, FailureCases, CheckpointCases, CurveCases}) {
    for (SharedCase& one : of()) cases.push_back(std::move(one));
  }
  return cases;
}

namespace {

SharedResult Try(const SharedCase& one, SharedRuns& runs) {
  try {
    return one.run(runs);
  } catch (const std::exception& error) {  // of a file that a run should have left
    return {error.what()};
  }
}

int Main(int argc, char** argv) {
  std::map<std::string, SharedCase> cases;
  for (SharedCase& one : SharedCases()) {
    std::string name = one.group + "/" + one.name;
    if (argc == 2 && std::strcmp(argv[1], "--list") == 0) std::printf("%s\n", name.c_str());
    if (!cases.emplace(name, std::move(one)).second) {
      std::fprintf(stderr, "gpu_shared: two cases are named %s\n", name.c_str());
      return 2;
    }
  }
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return 0;
  if (argc != 4) {
    std::fprintf(stderr, "usage: gpu_shared --list | BINARIES SOURCE cuda|cpu\n");
    return 2;
  }
  SharedRuns runs(argv[1], argv[2], argv[3]);
  for (std::string name; std::getline(std::cin, name);) {
    const auto found = cases.find(name);
    const SharedResult result = found == cases.end() ? SharedResult{"there is no such case"} : Try(found->second, runs);
    if (!result.wrong.empty()) std::printf("%s\n", result.wrong.c_str());
    std::printf("%s %s %s\n", result.wrong.empty() ? "PASS" : "FAIL", name.c_str(), result.figures.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace planwright::testing

int main(int argc, char** argv) { return planwright::testing::Main(argc, argv); }
