// What must hold for every command: exit statuses, --json, overrides, help. The test reads the commands from
// `plan --help`, so a new one is tested from its first day.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"
#include "tests/exchange/toy_folder.h"
#include "tests/state/checkpoint/plan_checkpoint.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ProgramResult;
using ::testing::StartsWith;

const std::string kToy = InSource("recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml");

class EveryCommand : public testing::PlanProgram {
 protected:
  // Names in the overview: lines of "  name   what it does".
  std::vector<std::string> Commands() {
    std::vector<std::string> names;
    std::istringstream lines(Plan("--help").out);
    bool listed = false;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("usage:"))
        listed = true;
      else if (listed && line.starts_with("  "))
        names.push_back(line.substr(2, line.find(' ', 2) - 2));
      else if (listed && !line.empty())
        break;
    }
    return names;
  }

  // For each command, a call that succeeds. It contains `recipe` and `overrides` if the command takes them.
  std::map<std::string, std::string> Calls(const std::string& recipe, const std::string& overrides) {
    const std::string run = folder_ + "/run" + std::to_string(++runs_);
    std::filesystem::create_directories(folder_ + "/old_run/checkpoints");
    std::filesystem::create_directories(folder_ + "/done_run");
    Write("done_run/outcome.json", "{\"exit_code\": 0, \"cause\": \"done\"}");
    Write("done_run/metrics.jsonl", "");
    if (runs_ == 1) {
      testing::WriteToy(folder_ + "/published", testing::ReadToy("lm"));
      testing::WriteCheckpointOf(testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml")),
                                 folder_ + "/trained", 4, 1);
    }
    return {{"validate", recipe + " " + overrides},
            {"compile", recipe + " " + overrides + " -o " + folder_ + "/plan.json"},
            {"show", recipe + " ranks " + overrides},
            {"weights", recipe + " " + overrides},
            {"data", "index " + recipe + " " + overrides},
            {"diff", recipe + " " + overrides + " " + recipe + " " + overrides},
            {"launch",
             recipe + " " + overrides + " --local --yes --executor " + InBuild("bin/fake_rank") + " --run-dir " + run},
            {"measure",
             recipe + " " + overrides + " -o " + folder_ + "/profile.json --executor " + InBuild("bin/fake_rank")},
            {"tune", recipe + " " + overrides + " --candidates 3 --best 1 --fix modules.language.parallel,gradients"},
            {"init",
             "--model nemotron_moe_vlm_20l --gpus 8 cluster.gpu=h200_sxm --candidates 3 --best 1 "
             "--fix modules.language.recompute,modules.radio_encoder.parallel,gradients"},
            {"status", folder_ + "/done_run"},
            {"report", folder_ + "/done_run"},
            {"evaluate", folder_ + "/trained/checkpoints/" + CheckpointFolder(4, 1) + " " + recipe + " " + overrides},
            {"checkpoint", "ls " + folder_ + "/old_run"},
            {"import", folder_ + "/published"},
            {"export", folder_ + "/trained/checkpoints/" + CheckpointFolder(4, 1) + " -o " + folder_ + "/home" +
                           std::to_string(runs_)},
            {"agent", folder_ + "/head.json"},
            {"job", folder_ + "/done_run"},
            {"explain", "PW0203"},
            {"help", "launch"},
            {"fmt", "--check " + kToy},
            {"completion", "bash"}};
  }
  // Commands that read no recipe.
  static bool TakesRecipe(const std::string& command) {
    static const std::set<std::string> kOthers = {"agent", "checkpoint", "completion", "explain", "export", "fmt",
                                                  "help",  "import",     "init",       "job",     "report", "status"};
    return !kOthers.contains(command);
  }
  // Commands that do something by themselves. Of the others, two are parts of a run (tests/run/agents,
  // tests/run/slurm), and `measure` and `evaluate` need what only real ranks write (tests/end_to_end/measure_test.cc,
  // tests/numerics/evaluated_layouts_test.cc).
  std::vector<std::string> WholeCommands() {
    static const std::set<std::string> kOthers = {"agent", "evaluate", "job", "measure"};
    std::vector<std::string> names = Commands();
    std::erase_if(names, [](const std::string& name) { return kOthers.contains(name); });
    return names;
  }

  int runs_ = 0;
};

TEST_F(EveryCommand, IsKnownToTheseTests) {
  const std::vector<std::string> commands = Commands();
  EXPECT_GE(commands.size(), 10u);
  const auto calls = Calls(kToy, "");
  for (const std::string& command : commands)
    EXPECT_TRUE(calls.contains(command)) << "say how `plan " << command << "` is called";
}

TEST_F(EveryCommand, SucceedsWithZeroAndNoErrors) {
  const auto calls = Calls(kToy, "");
  for (const std::string& command : WholeCommands()) {
    const ProgramResult result = Plan(command + " " + calls.at(command));
    EXPECT_EQ(result.status, 0) << command << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr("error"))) << command;
    EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b["))) << command << " colours what is no terminal";
  }
}

TEST_F(EveryCommand, PrintsOneJsonValue) {
  const auto calls = Calls(kToy, "");
  for (const std::string& command : WholeCommands()) {
    const ProgramResult result = Plan(command + " " + calls.at(command) + " --json");
    EXPECT_EQ(result.status, 0) << command << result.err;
    EXPECT_TRUE(json::accept(result.out)) << command << ": " << result.out.substr(0, 200);
  }
}

// Fake ranks write no traces, so that the first part of a measurement fails.
TEST_F(EveryCommand, ThatMeasuresPrintsTheOutcomeOfAFailedPart) {
  const ProgramResult result = Plan("measure " + Calls(kToy, "").at("measure") + " --json");
  EXPECT_EQ(result.status, 15) << result.err;
  const json printed = json::parse(result.out);
  EXPECT_EQ(printed["exit_code"], 15);
  EXPECT_EQ(printed["part"], kToy);
  EXPECT_THAT(printed["run_dir"].get<std::string>(), StartsWith(folder_ + "/profile.json.parts/"));
}

TEST_F(EveryCommand, TakesOverrides) {
  const auto calls = Calls(kToy, "name=renamed batch.global_samples=4");
  for (const std::string& command : WholeCommands()) {
    if (!TakesRecipe(command)) continue;
    EXPECT_EQ(Plan(command + " " + calls.at(command)).status, 0) << command;
  }
  EXPECT_EQ(json::parse(Read("plan.json"))["budget"]["global_samples"], 4);
  const auto bad = Calls(kToy, "batch.global_sample=4");
  for (const std::string& command : Commands()) {
    if (!TakesRecipe(command)) continue;
    const ProgramResult text = Plan(command + " " + bad.at(command)),
                        data = Plan(command + " " + bad.at(command) + " --json");
    const int expected = command == "diff" ? 2 : 1;  // for `diff`, 1 means that plans differ
    EXPECT_EQ(text.status, expected) << command;
    EXPECT_EQ(data.status, expected) << command;
    EXPECT_THAT(text.out, IsEmpty()) << command;
    EXPECT_THAT(text.err, HasSubstr("did you mean `global_samples`")) << command;
    EXPECT_THAT(data.out, HasSubstr("\"valid\": false")) << command << ": problems are data";
    EXPECT_THAT(data.out, HasSubstr("PW0101")) << command;
    EXPECT_THAT(data.err, IsEmpty()) << command;
  }
}

TEST_F(EveryCommand, AnswersWrongUsageWithTwo) {
  const auto calls = Calls(folder_ + "/none.yaml", ""), good = Calls(kToy, "");
  for (const std::string& command : Commands()) {
    const ProgramResult option = Plan(command + " " + good.at(command) + " --nonsense");
    EXPECT_EQ(option.status, 2) << command;
    EXPECT_THAT(option.err, StartsWith("error: ")) << command;
    EXPECT_THAT(option.out, IsEmpty()) << command;
    EXPECT_EQ(Plan(command + " " + good.at(command) + " --json --json").status, 2) << command;
    if (TakesRecipe(command)) {
      EXPECT_EQ(Plan(command + " " + calls.at(command)).status, 2) << command << " of a file that is not there";
    }
  }
  for (const std::string& command : WholeCommands()) {
    EXPECT_EQ(Plan(command + " " + good.at(command) + " --json >/dev/full; exit $? #").status, 2)
        << command << " onto a full disk";
  }
}

// As long as the run itself is done: its directory has all that was printed.
TEST_F(EveryCommand, ThatLaunchesEndsAsItsRunDoes) {
  for (const auto& [to, place] : {std::pair(">/dev/full", "/dev/full"), std::pair(">&-", "which is closed")}) {
    const ProgramResult result = Shell("(FAKE_RANK_0=say=hello " + InBuild("bin/plan") + " launch " +
                                       Calls(kToy, "").at("launch") + " " + to + ")");
    const std::string run = folder_ + "/run" + std::to_string(runs_);
    EXPECT_EQ(result.status, 0) << to;
    EXPECT_EQ(json::parse(Read("run" + std::to_string(runs_) + "/outcome.json"))["exit_code"], 0) << to;
    EXPECT_THAT(result.err, HasSubstr(std::string(place) + "; " + run + "/logs/rank0000.out has the lines")) << to;
  }
}

TEST_F(EveryCommand, HelpsOnStdout) {
  for (const std::string& command : Commands()) {
    const ProgramResult result = Plan(command + " --help");
    EXPECT_EQ(result.status, 0) << command;
    EXPECT_THAT(result.out, HasSubstr("usage: plan " + command)) << command;
    EXPECT_THAT(result.out, HasSubstr("--json")) << command;
    EXPECT_THAT(result.err, IsEmpty()) << command;
  }
}

}  // namespace
}  // namespace planwright
