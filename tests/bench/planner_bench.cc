// How long the planner takes: `plan validate` and `plan tune` as processes, and each pass inside this process. Tables
// at the end show medians, and compare them with what is promised. Exit status 0: every promise holds.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/compile/compile.h"
#include "planner/plan/link/linked_program.h"
#include "planner/plan/origin_paths.h"
#include "planner/plan/plan_json.h"
#include "planner/predict/estimate/step_time.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/rules.h"
#include "tests/support/folders.h"

extern char** environ;

namespace planwright {
namespace {

struct Case {
  std::string name, path;
  std::vector<std::string> overrides;
  double most_ms = 0, most_megabytes = 0;  // promised for `plan validate`; 0: nothing is promised
};

const std::string kProcess = "validate, process";
const std::string kRecipes = InSource("recipes/");

// The 20-layer model with dp for this many ranks, two microbatches a step. Only the world and the bridge table grow
// with the number of ranks; times should grow little more.
Case Lanes(int ranks) {
  const int encoder = ranks / 2, language = ranks - encoder, samples = language;  // tp 2, so two samples a lane
  Case result = {
      "20l over dp, " + std::to_string(ranks) + " ranks", kRecipes + "nemotron_moe_vlm_20l_mock_8r.yaml", {}};
  const std::pair<const char*, int> settings[] = {{"cluster.nodes", ranks / 8},
                                                  {"modules.radio_encoder.placement.ranks", encoder},
                                                  {"modules.language.placement.first_rank", encoder},
                                                  {"modules.language.placement.ranks", language},
                                                  {"batch.global_samples", samples},
                                                  {"budget.train_samples", 10 * samples},
                                                  {"budget.learning_rate.decay_samples", 10 * samples}};
  for (const auto& [key, value] : settings) result.overrides.push_back(std::string(key) + "=" + std::to_string(value));
  return result;
}

std::vector<Case> Cases() {
  std::vector<Case> cases = {{"20l, 8 ranks", kRecipes + "nemotron_moe_vlm_20l_mock_8r.yaml", {}, 20},
                             {"54l, 264 ranks", kRecipes + "nemotron_moe_vlm_54l_33n.yaml", {}, 50},
                             {"54l, 131,072 ranks", kRecipes + "nemotron_moe_vlm_54l_131072r.yaml", {}, 1000, 200}};
  for (int ranks : {64, 512, 4096, 32768, 131072}) cases.push_back(Lanes(ranks));
  return cases;
}

Recipe ReadCase(const Case& of) {
  Diagnostics problems;
  std::optional<Recipe> recipe = ReadRecipe(of.path, of.overrides, problems);
  if (recipe) return *std::move(recipe);
  std::fprintf(stderr, "%s: %s\n", of.name.c_str(), problems.sorted().front().message.c_str());
  std::exit(1);
}

Plan CompileCase(const Case& of) {
  Diagnostics problems;
  std::optional<Plan> plan = CompileRecipe(ReadCase(of), problems);
  if (plan) return *std::move(plan);
  std::fprintf(stderr, "%s: %s\n", of.name.c_str(), problems.sorted().front().message.c_str());
  std::exit(1);
}

struct Rule {
  const char* name;
  std::function<void(const Plan&)> check;  // builds the index that the rule reads, which counts as its time
};
const std::vector<Rule>& Rules() {
  const auto indexed = [](auto verify) {
    return [verify](const Plan& plan) { benchmark::DoNotOptimize(verify(PlanIndex(plan))); };
  };
  const auto called = [](auto verify) {
    return [verify](const Plan& plan) {
      const PlanIndex index(plan);
      benchmark::DoNotOptimize(verify(index, CallsOfMicrobatches(index)));
    };
  };
  const auto plain = [](auto verify) { return [verify](const Plan& plan) { benchmark::DoNotOptimize(verify(plan)); }; };
  static const std::vector<Rule> rules = {
      {"V1 placement", plain(VerifyPlacement)},
      {"V2 groups", plain(VerifyGroups)},
      {"V3 progress", plain(VerifyProgress)},
      {"V4 calls", plain(VerifyCalls)},
      {"V4 values", indexed(VerifyValues)},
      {"V4 saved values", called(VerifySavedValues)},
      {"V5 layers", called(VerifyLayers)},
      {"V5 backward", called(VerifyBackward)},
      {"V5 bridges", indexed(VerifyBridges)},
      {"V5 microbatches", indexed(VerifyMicrobatches)},
      {"V5 meanings", indexed(VerifyMeanings)},
      {"V6 counted once", indexed(VerifyCountedOnce)},
      {"V6 gradient sums", indexed(VerifyGradientSums)},
      {"V7 storage", indexed(VerifyStorage)},
      {"V7 states", indexed(VerifyStates)},
      {"V7 updates", indexed(VerifyUpdates)},
      {"V8 budget", plain(VerifyBudget)},
      {"V9 checkpoint", plain(VerifyCheckpoint)},
      {"V9 checkpoint keys", plain(VerifyCheckpointKeys)},
      {"V10 run-time sizes", indexed(VerifyRunTimeSizes)},
      {"V10 memory", plain([](const Plan& plan) { return VerifyMemory(plan); })},
      {"V10 host memory", plain(VerifyHostMemory)},
      {"V11 modules", indexed(VerifyModules)},
      {"V11 forward graphs", called([](const PlanIndex& index, const std::vector<MicrobatchCalls>& calls) {
         return VerifyForwardGraphs(index, calls);
       })},
      {"V11 recompute", called(VerifyRecompute)},
      {"V11 derived fields", indexed(VerifyDerivedFields)},
      {"V11 programs", called(VerifyPrograms)},
      {"V11 siblings", indexed(VerifySiblings)},
      {"V11 frees", indexed(VerifyFrees)}};
  return rules;
}

// Runs `plan` with these words. Returns what it used. `output`: a file for its stdout.
rusage RunPlan(std::vector<std::string> arguments, const std::string& output) {
  arguments.insert(arguments.begin(), "plan");
  std::vector<char*> words;
  for (std::string& text : arguments) words.push_back(text.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int status = -1;
  rusage used{};
  if (posix_spawn(&child, InBuild("bin/plan").c_str(), &files, nullptr, words.data(), environ) == 0)
    wait4(child, &status, 0, &used);
  posix_spawn_file_actions_destroy(&files);
  if (status != 0) std::fprintf(stderr, "plan %s failed\n", words[1]), std::exit(1);
  return used;
}

double MegabytesOf(const rusage& used) { return static_cast<double>(used.ru_maxrss) / 1024; }

// Runs `plan validate` as a process. Returns its peak memory in MB.
double ValidateProcess(const Case& of) {
  std::vector<std::string> words = {"validate", of.path};
  words.insert(words.end(), of.overrides.begin(), of.overrides.end());
  return MegabytesOf(RunPlan(words, "/dev/null"));
}

// What `plan tune` with every key open did, as a process.
struct Tuned {
  int64_t timed = 0, proved = 0;
  double candidates = 0, cpu = 0, megabytes = 0;
};

Tuned TuneProcess() {
  const std::string output = InBuild("planner_bench_tuned.json");
  const rusage used = RunPlan({"tune", kRecipes + "nemotron_moe_vlm_20l_mock_8r.yaml", "cluster.gpu=h100_sxm",
                               "cluster.gpus_per_node=4", "cluster.nodes=2", "--json"},
                              output);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  std::ifstream file(output);
  const nlohmann::json json = nlohmann::json::parse(file);
  std::remove(output.c_str());
  Tuned tuned = {.timed = json.at("space").at("timed").get<int64_t>(),
                 .candidates = json.at("space").at("candidates").get<double>(),
                 .cpu = seconds(used.ru_utime) + seconds(used.ru_stime),
                 .megabytes = MegabytesOf(used)};
  for (const nlohmann::json& layout : json.at("best")) tuned.proved += layout.at("proved").get<bool>() ? 1 : 0;
  return tuned;
}

// Returns whether the promise holds, which is for one core.
bool PrintTuned(const Tuned& tuned) {
  constexpr double kMostSeconds = 10, kMostMegabytes = 256;
  constexpr int64_t kTimed = 10'000, kProved = 10;
  const bool kept =
      tuned.timed >= kTimed && tuned.proved == kProved && tuned.cpu < kMostSeconds && tuned.megabytes < kMostMegabytes;
  std::printf("\n%-30s%12s%9s%8s%9s%10s\n", "plan tune", "candidates", "timed", "proved", "CPU s", "peak MB");
  std::printf("%-30s%12.0f%9lld%8lld%9.1f%10.1f   %lld timed, %lld proved, under %g s and %g MB: %s\n",
              "20l, 8 ranks, every key open", tuned.candidates, static_cast<long long>(tuned.timed),
              static_cast<long long>(tuned.proved), tuned.cpu, tuned.megabytes, static_cast<long long>(kTimed),
              static_cast<long long>(kProved), kMostSeconds, kMostMegabytes, kept ? "yes" : "NO");
  return kept;
}

// One line of the tables.
struct Row {
  Case of;
  int ranks = 0;
  size_t bytes = 0, roles = 0, blocks = 0;
  double megabytes = 0;
};
std::vector<Row> rows;

void Register(const Case& of, double megabytes) {
  const auto add = [&](const std::string& what, auto body) {
    benchmark::RegisterBenchmark((what + " | " + of.name).c_str(), body)->Unit(benchmark::kMillisecond)->UseRealTime();
  };
  Plan plan = CompileCase(of);
  MakeOriginsRelative(of.path, plan);
  rows.push_back({of, plan.world_size, WritePlan(plan).size(), plan.roles.size(), plan.blocks.size(), megabytes});
  add(kProcess, [of](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ValidateProcess(of));
  });
  add("read", [of](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ReadCase(of));
  });
  add("compile and verify", [recipe = ReadCase(of)](benchmark::State& state) {
    for (auto _ : state) {
      Diagnostics problems;
      benchmark::DoNotOptimize(CompileRecipe(recipe, problems));
    }
  });
  add("write", [plan](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(WritePlan(plan));
  });
  add("read plan", [text = WritePlan(plan)](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ReadPlan(text));
  });
  add("link", [plan](benchmark::State& state) {
    for (auto _ : state) {
      LinkedBlocks blocks(plan);
      for (const Role& role : plan.roles) benchmark::DoNotOptimize(LinkedProgram(blocks, role).entries().size());
    }
  });
  add("time of a step", [plan](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(TimeStep(plan).length);
  });
  for (const Rule& rule : Rules()) {
    add(rule.name, [plan, rule](benchmark::State& state) {
      for (auto _ : state) rule.check(plan);
    });
  }
}

// Prints results as they come, and keeps the medians for the tables.
class Medians : public benchmark::ConsoleReporter {
 public:
  Medians() : ConsoleReporter(isatty(STDOUT_FILENO) ? OO_ColorTabular : OO_Tabular) {}
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const std::string name = run.run_name.function_name;
      const size_t bar = name.find(" | ");
      if (run.aggregate_name == "median") of_[{name.substr(bar + 3), name.substr(0, bar)}] = run.GetAdjustedRealTime();
    }
  }
  // Returns whether every promise holds.
  bool PrintPromises() const {
    bool held = true;
    std::printf("\n%-30s%9s%7s%8s%13s%10s%14s\n", "plan validate", "ranks", "roles", "blocks", "plan bytes", "peak MB",
                "median ms");
    for (const Row& row : rows) {
      const double ms = Median(row, kProcess);
      const double most_ms = row.of.most_ms, most_megabytes = row.of.most_megabytes;
      std::printf("%-30s%9d%7zu%8zu%13zu%10.1f%14.1f", row.of.name.c_str(), row.ranks, row.roles, row.blocks, row.bytes,
                  row.megabytes, ms);
      const bool measured = !std::isnan(ms);  // --benchmark_filter may leave it out
      const bool kept =
          !measured || ((most_ms == 0 || ms < most_ms) && (most_megabytes == 0 || row.megabytes < most_megabytes));
      const char* verdict = !measured ? "not measured" : kept ? "yes" : "NO";
      if (most_ms > 0) std::printf("   under %g ms%s: %s", most_ms, most_megabytes > 0 ? " and 200 MB" : "", verdict);
      std::printf("\n");
      held &= kept;
    }
    return held;
  }
  void PrintPasses() const {
    std::printf("\n%-20s", "median ms");
    for (const Row& row : rows)
      std::printf("%14s", (row.of.name.substr(0, 3) + " " + std::to_string(row.ranks)).c_str());
    std::printf("\n");
    std::vector<std::string> passes = {"read", "compile and verify"};
    for (const Rule& rule : Rules()) passes.push_back(rule.name);
    for (const char* pass : {"write", "read plan", "link", "time of a step"}) passes.push_back(pass);
    for (const std::string& pass : passes) {
      std::printf("%-20s", pass.c_str());
      for (const Row& row : rows) std::printf("%14.3f", Median(row, pass));
      std::printf("\n");
    }
  }

 private:
  // In ms; NaN if --benchmark_filter left it out.
  double Median(const Row& row, const std::string& pass) const {
    const auto it = of_.find({row.of.name, pass});
    return it == of_.end() ? std::nan("") : it->second;
  }

  std::map<std::pair<std::string, std::string>, double> of_;
};

}  // namespace
}  // namespace planwright

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  // Processes are measured first, while this one is small: its memory counts as a child's until the child's exec.
  std::vector<double> megabytes;
  for (const auto& of : planwright::Cases()) megabytes.push_back(planwright::ValidateProcess(of));
  const planwright::Tuned tuned = planwright::TuneProcess();
  for (size_t i = 0; i < megabytes.size(); ++i) planwright::Register(planwright::Cases()[i], megabytes[i]);
  planwright::Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  const bool held = medians.PrintPromises(), promised = planwright::PrintTuned(tuned);
  medians.PrintPasses();
  return held && promised ? 0 : 1;
}
