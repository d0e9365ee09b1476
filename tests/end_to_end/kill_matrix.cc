// The kill matrix: each role of a run of four ranks fails in each phase, in each way, before, during and after an
// instruction (kill_cases.h). The launcher must name rank, cause and instruction, end everything, and the run must go
// on as if nothing had happened (kill_runs.h). `./dev test` runs a sample, `./dev soak` all.
//
//   kill_matrix [--sample N] [--shard K/N] [--only TEXT] [--done FILE] [--times] [--list]
//
//   --sample N     N cases of a fixed sample
//   --shard K/N    every N-th case, from the K-th (from 1)
//   --only TEXT    cases whose name contains TEXT
//   --done FILE    skips the cases that FILE lists, and adds those that passed: a long run can go on later
//   --times        also judges when the fault is noticed and when all is gone: on a machine that does nothing else
//   --list         prints the names of the cases
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/end_to_end/kill_cases.h"
#include "tests/end_to_end/kill_runs.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

struct Options {
  size_t sample = 0, shard = 0, shards = 1;  // sample 0: all cases; shard from 0
  std::string only, done;
  bool list = false, times = false;
};

std::optional<Options> ReadOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--list") {
      options.list = true;
      continue;
    }
    if (name == "--times") {
      options.times = true;
      continue;
    }
    if (++i == argc) return std::nullopt;
    const std::string value = argv[i];
    if (name == "--sample") {
      options.sample = std::strtoul(value.c_str(), nullptr, 10);
    } else if (name == "--shard") {
      if (std::sscanf(value.c_str(), "%zu/%zu", &options.shard, &options.shards) != 2) return std::nullopt;
      if (options.shard < 1 || options.shard > options.shards) return std::nullopt;
      --options.shard;
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--done") {
      options.done = value;
    } else {
      return std::nullopt;
    }
  }
  return options;
}

std::set<std::string> LinesOf(const std::string& path) {
  std::set<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.insert(line);
  return lines;
}

std::vector<KillCase> Chosen(const Plan& plan, const Options& options) {
  std::vector<KillCase> cases = KillCases(plan), chosen;
  if (options.sample > 0) cases = SampleOf(cases, options.sample);
  const std::set<std::string> done = LinesOf(options.done);
  for (size_t i = options.shard; i < cases.size(); i += options.shards) {
    const std::string name = cases[i].Name();
    if (name.find(options.only) != std::string::npos && !done.contains(name)) chosen.push_back(cases[i]);
  }
  return chosen;
}

// Cases that passed and cases that ran, by phase and fault.
class Table {
 public:
  void Add(const KillCase& one, bool passed) {
    auto& [good, all] = cells_[{one.phase, one.fault}];
    good += passed, ++all;
  }
  void Print() {
    std::printf("%-10s", "");
    for (const std::string& fault : KillFaults()) std::printf("%10s", fault.c_str());
    std::printf("\n");
    for (const std::string& phase : KillPhases()) {
      std::printf("%-10s", phase.c_str());
      for (const std::string& fault : KillFaults()) {
        const auto& [good, all] = cells_[{phase, fault}];
        std::printf("%10s", all == 0 ? "-" : (std::to_string(good) + "/" + std::to_string(all)).c_str());
      }
      std::printf("\n");
    }
  }

 private:
  std::map<std::pair<std::string, std::string>, std::pair<int, int>> cells_;
};

int Main(int argc, char** argv) {
  const std::optional<Options> options = ReadOptions(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: kill_matrix [--sample N] [--shard K/N] [--only TEXT] [--done FILE] [--times] [--list]\n");
    return 2;
  }
  KillSetup setup = FourRanks(InBuild("bin"), InSource("recipes/nemotron_moe_vlm_tiny.yaml"));
  setup.judges_times = options->times;
  const KillRuns runs(std::move(setup));
  if (!runs.problem().empty()) {
    std::fprintf(stderr, "%s\n", runs.problem().c_str());
    return 1;
  }
  const std::vector<KillCase> cases = Chosen(runs.plan(), *options);
  Table table;
  int failed = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const KillCase& one = cases[i];
    std::printf("%zu/%zu %s%s", i + 1, cases.size(), one.Name().c_str(), one.resumes ? ", resumed" : "");
    if (options->list) {
      std::printf("\n");
      continue;
    }
    std::fflush(stdout);
    KillAftermath after;
    const std::string wrong = runs.WhatIsWrong(one, after);
    std::printf(": noticed after %.3f s, gone after %.3f s: %s\n", after.noticed.value_or(-1), after.gone.value_or(-1),
                wrong.empty() ? "ok" : "FAILED");
    if (!wrong.empty()) {
      ++failed;
      std::printf("  %s\n%s\n%s\n", wrong.c_str(), after.outcome.dump(1).c_str(), after.output.c_str());
    }
    std::fflush(stdout);
    table.Add(one, wrong.empty());
    if (!options->done.empty() && wrong.empty()) std::ofstream(options->done, std::ios::app) << one.Name() << std::endl;
  }
  if (options->list) return 0;
  table.Print();
  std::printf("%zu cases, %d failed\n", cases.size(), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace planwright::testing

int main(int argc, char** argv) { return planwright::testing::Main(argc, argv); }
