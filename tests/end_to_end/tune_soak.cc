// `plan tune` held against runs: every layout of a small space is measured and run on two ranks, and that which the
// search calls the fastest must be among the three that were. Judges by the clock, so it runs alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "nlohmann/json.hpp"
#include "planner/run_files/exit_status.h"
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
  json Tune(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        "tune", folder_ + "/recipe.yaml", "--gpus", "2", "--fix", kFixed, "--best", "1000", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return json::parse(Run(words), nullptr, false);
  }
  // Seconds of the steps of one run.
  std::vector<double> StepsOf(const std::string& plan) const {
    const std::string run_dir = folder_ + "/run";
    Run({"launch", plan, "--local", "--steps", std::to_string(kSteps), "--run-dir", run_dir});
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
  std::vector<double> steps;
  double predicted = 0;

  double median() const {
    std::vector<double> sorted = steps;
    std::sort(sorted.begin(), sorted.end());
    return sorted.empty() ? 0 : sorted[sorted.size() / 2];
  }
};

TEST_F(TuneSoak, ChoosesOneOfTheThreeFastest) {
  // All layouts: of a device of unknown speed as many are listed.
  const json all = Tune({});
  ASSERT_GE(all["best"].size(), 8u);
  ASSERT_EQ(static_cast<double>(all["best"].size()),
            all["space"]["candidates"].get<double>() - all["space"]["rules"].get<double>())
      << "the list is not all of the space";
  std::vector<RunLayout> layouts;
  std::vector<std::string> measure = {"measure"};
  for (const json& layout : all["best"]) {
    layouts.push_back({layout["layout"], folder_ + "/plan" + std::to_string(layouts.size()) + ".json", {}, 0});
    std::vector<std::string> compile = {"compile", folder_ + "/recipe.yaml"};
    for (const std::string change : layout["changes"]) compile.push_back(change);
    compile.insert(compile.end(), {"-o", layouts.back().plan});
    Run(compile);
    measure.push_back(layouts.back().plan);
  }
  measure.insert(measure.end(), {"-o", folder_ + "/profile.json"});
  Run(measure);

  const json tuned = Tune({"cluster.profile=" + folder_ + "/profile.json"});
  ASSERT_EQ(tuned["best"].size(), layouts.size());
  for (const json& layout : tuned["best"]) {
    for (RunLayout& run : layouts) {
      if (run.line == layout["layout"].get<std::string>()) run.predicted = layout["seconds"].get<double>();
    }
  }
  // Runs take turns, so that all of them meet the same machine.
  for (int round = 0; round < kRounds; ++round) {
    for (RunLayout& layout : layouts) {
      for (double seconds : StepsOf(layout.plan)) layout.steps.push_back(seconds);
    }
  }
  std::sort(layouts.begin(), layouts.end(),
            [](const RunLayout& a, const RunLayout& b) { return a.median() < b.median(); });
  const std::string chosen = tuned["best"][0]["layout"];
  std::vector<std::string> fastest;
  for (const RunLayout& layout : layouts) {
    std::cout << (layout.line == chosen ? "* " : "  ") << "measured " << layout.median() << " s, predicted "
              << layout.predicted << " s: " << layout.line << "\n";
    if (fastest.size() < 3) fastest.push_back(layout.line);
  }
  EXPECT_THAT(fastest, ::testing::Contains(chosen));
}

}  // namespace
}  // namespace planwright::testing
