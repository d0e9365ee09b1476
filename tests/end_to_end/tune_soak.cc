// `plan tune` held against runs: every layout of a small space is measured and run on two ranks, and that which the
// search calls the fastest must be among the three that were. Judges by the clock, so it runs alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "tests/end_to_end/processes.h"
#include "tests/support/eventually.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Keys that this machine cannot tell apart, or that make the space too large to run all of it.
constexpr const char* kFixed =
    "modules.radio_encoder.recompute,modules.language.recompute,modules.language.parallel.dispatch,"
    "modules.language.parallel.overlap_dispatch,modules.language.parallel.stage_layers,"
    "modules.radio_encoder.parallel.stage_layers,gradients,batch.micro_samples";
constexpr int kRounds = 5, kSteps = 8, kFirst = 3;

class TuneSoak : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    // The widths of the tiny recipe several times over, so that steps are more than their latencies.
    std::ofstream(folder_ + "/recipe.yaml")
        << "extends: ['" << InSource("recipes/nemotron_moe_vlm_tiny.yaml") << "']\n"
        << "cluster: {gpus_per_node: 2}\n"
        << "models:\n  radio_vit_tiny: {hidden: 128, ffn: 512, projector: {hidden: 256}}\n"
        << "  hybrid_moe_tiny: {hidden: 256, moe: {ffn: 192, shared_ffn: 256}}\n"
        << "batch: {micro_samples: 2, sequence_length: 96}\n";
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Run(std::vector<std::string> words) const {
    words.insert(words.begin(), InBuild("bin/plan"));
    const Started started = StartProgram(words, {}, folder_ + "/output");
    EXPECT_EQ(WaitFor(started.pid, 4 * kPatience).value_or(-1), kExitSuccess) << ReadAll(started.output);
    return ReadAll(started.output);
  }
  // What is printed behind warnings.
  static json Printed(const std::string& output) { return json::parse(output.substr(output.find("\n{") + 1)); }
  json Tune(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "tune", folder_ + "/recipe.yaml", "--gpus", "2", "--fix", kFixed, "--best", "1000", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return Printed("\n" + Run(words));
  }
  // Seconds of the steps of one run.
  std::vector<double> StepsOf(const std::string& plan) const {
    const std::string run_dir = folder_ + "/run";
    Run({"launch", plan, "--local", "--yes", "--steps", std::to_string(kSteps), "--run-dir", run_dir});
    std::vector<double> seconds;
    std::istringstream lines(ReadAll(run_dir + "/metrics.jsonl"));
    int step = 0;
    for (std::string line; std::getline(lines, line);) {
      if (++step >= kFirst) seconds.push_back(json::parse(line)["step_seconds"]);
    }
    fs::remove_all(run_dir);
    return seconds;
  }

  std::string folder_ = (fs::temp_directory_path() / "planwright_tune_XXXXXX").string();
};

struct RunLayout {
  std::string line, plan;
  std::vector<std::string> overrides;
  std::vector<double> steps;
  double predicted = 0;
  std::string digest = {};  // of its plan with the profile

  double median() const {
    std::vector<double> sorted = steps;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
};

// Every layout of two ranks that compiles, each once.
std::vector<std::vector<std::string>> AllOfTwoRanks() {
  std::vector<std::vector<std::string>> all;
  const auto join = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  all.push_back({"modules.radio_encoder.placement={first_rank: 0, ranks: 1}",
                 "modules.language.placement={first_rank: 1, ranks: 1}"});
  std::vector<std::vector<std::string>> together = {{"modules.radio_encoder.placement={first_rank: 0, ranks: 2}",
                                                     "modules.language.placement={first_rank: 0, ranks: 2}"}};
  for (const char* key :
       {"radio_encoder.parallel.tp", "radio_encoder.parallel.pp", "language.parallel.tp", "language.parallel.cp",
        "language.parallel.pp", "language.parallel.ep", "language.parallel.expert_tp"}) {
    std::vector<std::vector<std::string>> next;
    for (const auto& words : together) {
      for (const char* size : {"1", "2"}) next.push_back(join(words, {"modules." + std::string(key) + "=" + size}));
    }
    together = std::move(next);
  }
  all.insert(all.end(), together.begin(), together.end());
  return all;
}

TEST_F(TuneSoak, ChoosesOneOfTheThreeFastest) {
  std::vector<RunLayout> layouts;
  std::vector<std::string> measure = {"measure"};
  std::set<std::string> digests;
  for (const std::vector<std::string>& overrides : AllOfTwoRanks()) {
    const std::string plan = folder_ + "/plan" + std::to_string(layouts.size()) + ".json";
    std::vector<std::string> compile = {InBuild("bin/plan"), "compile", folder_ + "/recipe.yaml"};
    compile.insert(compile.end(), overrides.begin(), overrides.end());
    compile.insert(compile.end(), {"-o", plan});
    const Started started = StartProgram(compile, {}, folder_ + "/output");
    if (WaitFor(started.pid, kPatience).value_or(-1) != kExitSuccess) continue;
    if (!digests.insert(json::parse(ReadAll(plan))["digest"]).second) continue;
    layouts.push_back({"", plan, overrides, {}, 0});
    measure.push_back(plan);
  }
  const json space = Tune({})["space"];
  EXPECT_EQ(static_cast<double>(layouts.size()), space["candidates"].get<double>() - space["rules"].get<double>())
      << "the layouts are not all of the space";
  measure.insert(measure.end(), {"-o", folder_ + "/profile.json"});
  Run(measure);

  const std::string profile = "cluster.profile=" + folder_ + "/profile.json";
  // The first row may be another one that is as fast within the error of the times, and needs less memory.
  const json best = Tune({profile})["best"];
  const json fastest_predicted = *std::min_element(
      best.begin(), best.end(), [](const json& a, const json& b) { return a["seconds"] < b["seconds"]; });
  const std::string chosen = fastest_predicted["digest"];
  for (RunLayout& layout : layouts) {
    std::vector<std::string> show = {"show", folder_ + "/recipe.yaml", "time", profile, "--json"};
    show.insert(show.end(), layout.overrides.begin(), layout.overrides.end());
    layout.predicted = Printed("\n" + Run(show))["seconds"];
    layout.line = absl::StrJoin(layout.overrides, " ");
    std::vector<std::string> compile = {"compile", folder_ + "/recipe.yaml", profile, "-o", folder_ + "/p.json"};
    compile.insert(compile.end(), layout.overrides.begin(), layout.overrides.end());
    Run(compile);
    layout.digest = json::parse(ReadAll(folder_ + "/p.json"))["digest"];
  }
  // Runs take turns, so that all of them meet the same machine.
  for (int round = 0; round < kRounds; ++round) {
    for (RunLayout& layout : layouts) {
      for (double seconds : StepsOf(layout.plan)) layout.steps.push_back(seconds);
    }
  }
  std::sort(layouts.begin(), layouts.end(),
            [](const RunLayout& a, const RunLayout& b) { return a.median() < b.median(); });
  std::vector<std::string> fastest;
  for (const RunLayout& layout : layouts) {
    std::cout << (layout.digest == chosen ? "* " : "  ") << "measured " << layout.median() << " s, predicted "
              << layout.predicted << " s: " << layout.line << "\n";
    if (fastest.size() < 3) fastest.push_back(layout.digest);
  }
  EXPECT_THAT(fastest, ::testing::Contains(chosen));
}

}  // namespace
}  // namespace planwright::testing
