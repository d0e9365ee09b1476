// How long the planner takes: each pass in this process, and `plan validate` as a whole process. Medians of repetitions; one table at the end, with
// the sizes of the plans and the memory of the process.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "planner/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/recipe/recipe_reader.h"
#include "planner/verify/verify.h"

extern char** environ;

namespace planwright {
namespace {

struct Case {
  std::string name, path;
  std::vector<std::string> overrides;
};

const std::string kRecipes = PLANWRIGHT_SOURCE_DIR "/recipes/";

// The 20-layer model on more and more lanes, two microbatches a step: what may grow is the bridge table and the world, nothing else.
Case Lanes(int ranks) {
  const int encoder = ranks / 16, language = ranks - encoder, samples = language / 2 * 2;
  Case result = {"20l dp sweep, " + std::to_string(ranks) + " ranks", kRecipes + "nemotron_moe_vlm_20l_mock_8r.yaml", {}};
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
  std::vector<Case> cases = {{"20l, 8 ranks", kRecipes + "nemotron_moe_vlm_20l_mock_8r.yaml", {}},
                             {"54l, 264 ranks (33n)", kRecipes + "nemotron_moe_vlm_54l_33n.yaml", {}},
                             {"54l, 131,072 ranks", kRecipes + "nemotron_moe_vlm_54l_131072r.yaml", {}}};
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
  std::vector<Violation> (*check)(const Plan&);
};
constexpr Rule kRules[] = {{"V1 placement", VerifyPlacement}, {"V2 groups", VerifyGroups}, {"V3 progress", VerifyProgress},
                           {"V4 values", VerifyValues},       {"V8 budget", VerifyBudget}};

// `plan validate` from fork to end; its peak memory in MB.
double ValidateProcess(const Case& of) {
  std::vector<char*> words = {const_cast<char*>("plan"), const_cast<char*>("validate"), const_cast<char*>(of.path.c_str())};
  for (const std::string& text : of.overrides) words.push_back(const_cast<char*>(text.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  for (int fd : {1, 2}) posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  int status = -1;
  rusage used{};
  if (posix_spawn(&child, PLAN_PROGRAM, &files, nullptr, words.data(), environ) == 0) wait4(child, &status, 0, &used);
  posix_spawn_file_actions_destroy(&files);
  if (status != 0) std::fprintf(stderr, "%s: plan validate failed\n", of.name.c_str()), std::exit(1);
  return used.ru_maxrss / 1024.0;
}

struct Row {
  std::string name;
  int ranks = 0;
  size_t bytes = 0, roles = 0, blocks = 0;
  double megabytes = 0;
};
std::vector<Row> rows;

void Register(const Case& of) {
  const auto add = [&](const std::string& what, auto body) {
    benchmark::RegisterBenchmark((what + " | " + of.name).c_str(), body)->Unit(benchmark::kMillisecond)->UseRealTime();
  };
  const Plan plan = CompileCase(of);
  rows.push_back({of.name, plan.world_size, WritePlan(plan).size(), plan.roles.size(), plan.blocks.size(), ValidateProcess(of)});
  add("validate, process", [of](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ValidateProcess(of));
  });
  add("read", [of](benchmark::State& state) {
    for (auto _ : state) benchmark::DoNotOptimize(ReadCase(of));
  });
  add("compile and prove", [recipe = ReadCase(of)](benchmark::State& state) {
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
  for (const Rule& rule : kRules) {
    add(rule.name, [plan, rule](benchmark::State& state) {
      for (auto _ : state) benchmark::DoNotOptimize(rule.check(plan));
    });
  }
}

// Keeps the medians for the table.
class Medians : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const std::string name = run.run_name.function_name;
      const size_t bar = name.find(" | ");
      if (run.aggregate_name == "median") of_[{name.substr(bar + 3), name.substr(0, bar)}] = run.GetAdjustedRealTime();
    }
  }
  void PrintTable() const {
    const char* columns[] = {"validate, process", "read", "compile and prove", "V1 placement", "V2 groups", "V3 progress", "V4 values", "V8 budget", "write", "read plan"};
    std::printf("\nmedians in milliseconds\n%-32s%8s%6s%7s%12s%9s", "recipe", "ranks", "roles", "blocks", "plan bytes", "peak MB");
    for (const char* column : columns) std::printf("%19s", column);
    std::printf("\n");
    for (const Row& row : rows) {
      std::printf("%-32s%8d%6zu%7zu%12zu%9.1f", row.name.c_str(), row.ranks, row.roles, row.blocks, row.bytes, row.megabytes);
      for (const char* column : columns) {
        const auto it = of_.find({row.name, column});
        it == of_.end() ? std::printf("%19s", "-") : std::printf("%19.3f", it->second);
      }
      std::printf("\n");
    }
  }

 private:
  std::map<std::pair<std::string, std::string>, double> of_;
};

}  // namespace
}  // namespace planwright

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const auto& of : planwright::Cases()) planwright::Register(of);
  planwright::Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  medians.PrintTable();
  return 0;
}
