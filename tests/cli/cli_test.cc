// The real `plan` program: exit statuses, what goes to stdout and stderr, shapes of --json.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nlohmann/json.hpp"
#include "planner/plan/plan_json.h"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using Result = testing::ProgramResult;

const std::string kRecipe = InSource("recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml");

class Cli : public testing::PlanProgram {};

TEST_F(Cli, ValidatesAGoodRecipe) {
  const Result result = Plan("validate " + kRecipe);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("30 steps of 8 samples"));
  EXPECT_THAT(result.out, HasSubstr("radio_encoder    0-3"));
  EXPECT_THAT(result.err, Not(HasSubstr("error")));
}

TEST_F(Cli, SaysBySamplesHowFarTheLastStepPassesTheBudget) {
  const Result result =
      Plan("validate " + kRecipe + " budget.train_samples=241 budget.learning_rate.decay_samples=241");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("31 steps of 8 samples; the last one passes the budget of 241 by 7"));
}

TEST_F(Cli, AnInvalidRecipeIsLocatedOnStderr) {
  const Result result = Plan("validate " + kRecipe + " modules.language.parallel.tp=3");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, HasSubstr("PW0203"));
  EXPECT_THAT(result.err, Not(HasSubstr("\x1b["))) << "colour, but stderr is no terminal";
}

TEST_F(Cli, ProblemsAsJsonGoToStdout) {
  const Result result = Plan("validate " + kRecipe + " batch.global_sample=8 --json");
  EXPECT_EQ(result.status, 1);
  const json problems = json::parse(result.out);
  EXPECT_EQ(problems["valid"], false);
  ASSERT_FALSE(problems["problems"].empty());
  for (const char* field : {"kind", "name", "severity", "message", "file", "line", "column", "help", "notes"}) {
    EXPECT_TRUE(problems["problems"][0].contains(field)) << field;
  }
  EXPECT_EQ(problems["problems"][0]["kind"], "PW0101");
  EXPECT_THAT(result.err, IsEmpty());
}

TEST_F(Cli, AMissingRecipeIsAnInputError) {
  EXPECT_EQ(Plan("validate " + folder_ + "/none.yaml").status, 2);
  EXPECT_EQ(Plan("show " + folder_ + "/none.json ranks").status, 2);
}

TEST_F(Cli, ASubjectMayFollowOverrides) {
  const std::string override = " batch.micro_samples=2 ";
  const Result after = Plan("show " + kRecipe + override + "memory");
  EXPECT_EQ(after.status, 0) << after.err;
  EXPECT_EQ(after.out, Plan("show " + kRecipe + " memory" + override).out);
  EXPECT_THAT(Plan("show " + kRecipe + override).err, HasSubstr("no subject (ranks, "));
  EXPECT_THAT(Plan("show " + kRecipe + override + "memory time").err, HasSubstr("`time` is not an override"));
}

TEST_F(Cli, AnAbsentBatchIsToldBeforeRanksStart) {
  const std::string recipe = kRecipe + " 'data={kind: recorded, image_token: 255, path: " + folder_ + "/none}'";
  const Result launch = Plan("launch " + recipe + " --local --yes --executor " + InBuild("bin/fake_rank") +
                             " --run-dir " + folder_ + "/run");
  EXPECT_EQ(launch.status, 2);
  EXPECT_EQ(launch.err,
            "error: cannot read " + folder_ + "/none: No such file or directory, where the recipe has its samples\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
  const Result valid = Plan("validate " + recipe);
  EXPECT_EQ(valid.status, 0) << valid.err;
  EXPECT_THAT(valid.err, HasSubstr("none is not on this machine"));
}

TEST_F(Cli, CompilesTheSameBytesEveryTime) {
  const std::string file = folder_ + "/p.json";
  const Result result = Plan("compile " + kRecipe + " -o " + file);
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_EQ(Plan("compile " + kRecipe + " -o -").out, Read("p.json"));
  EXPECT_TRUE(ReadPlan(Read("p.json")).ok());
  EXPECT_EQ(Plan("validate " + file).status, 0);
}

TEST_F(Cli, CompilesTheSameBytesInAnyFolder) {
  const std::string bytes = Plan("compile " + kRecipe).out;
  const std::string name = std::filesystem::path(kRecipe).filename(),
                    recipes = std::filesystem::path(kRecipe).parent_path();
  const auto compile_in = [&](const std::string& folder, const std::string& path) {
    const std::string line =
        "cd " + folder + " && " + InBuild("bin/plan") + " compile " + path + " >" + folder_ + "/plan";
    EXPECT_EQ(std::system(line.c_str()), 0);
    return Read("plan");
  };
  EXPECT_EQ(compile_in(recipes, name), bytes);
  EXPECT_EQ(compile_in(recipes, "./../recipes/" + name), bytes);
  EXPECT_EQ(compile_in(recipes + "/..", "recipes/" + name), bytes);
  EXPECT_EQ(compile_in("/", kRecipe), bytes);
  std::filesystem::copy(recipes, folder_ + "/elsewhere", std::filesystem::copy_options::recursive);
  EXPECT_EQ(compile_in(folder_, "elsewhere/" + name), bytes);
}

TEST_F(Cli, AnOutputThatCannotBeWrittenIsAnError) {
  const Result result = Plan("compile " + kRecipe + " --output=" + folder_ + "/none/p.json");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("none/p.json: No such file"));
  EXPECT_EQ(Plan("compile " + kRecipe + " >/dev/full; exit $? #").status, 2);
}

TEST_F(Cli, APlanThatWasChangedIsRefused) {
  Plan("compile " + kRecipe + " -o " + folder_ + "/p.json");
  std::string text = Read("p.json");
  text.replace(text.find("\"world_size\": 8"), 15, "\"world_size\": 9");
  const Result result = Plan("show " + Write("changed.json", text) + " ranks");
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, HasSubstr("changed after it was compiled"));
}

TEST_F(Cli, OverridesNeedARecipe) {
  Plan("compile " + kRecipe + " -o " + folder_ + "/p.json");
  EXPECT_EQ(Plan("show " + folder_ + "/p.json ranks a.b=c").status, 2);
}

TEST_F(Cli, ShowsEverySubjectOfARecipeAndOfItsPlanAlike) {
  Plan("compile " + kRecipe + " -o " + folder_ + "/p.json");
  const std::pair<const char*, const char*> kSubjects[] = {
      {"ranks", "ranks"},     {"groups", "groups"}, {"bridges", "bridges"}, {"data", "lanes"},   {"budget", "segments"},
      {"schedule", "stages"}, {"model", "modules"}, {"memory", "roles"},    {"program", "roles"}};
  for (const auto& [subject, field] : kSubjects) {
    const Result text = Plan("show " + kRecipe + " " + subject),
                 data = Plan("show " + kRecipe + " " + subject + " --json");
    EXPECT_EQ(text.status, 0) << subject << text.err;
    EXPECT_GT(text.out.size(), 50u) << subject;
    EXPECT_THAT(text.out, Not(HasSubstr("\x1b"))) << subject << ": colour in a file";
    EXPECT_EQ(data.status, 0) << subject;
    EXPECT_FALSE(json::parse(data.out)[field].empty()) << subject;
    EXPECT_EQ(Plan("show " + folder_ + "/p.json " + subject + " --json").out, data.out) << subject;
  }
}

TEST_F(Cli, ShowKeepsToTheColumnsOfTheTerminal) {
  ASSERT_EQ(setenv("COLUMNS", "80", 1), 0);
  const std::string narrow = Plan("show " + kRecipe + " memory").out;
  unsetenv("COLUMNS");
  const std::string wide = Plan("show " + kRecipe + " memory").out;
  EXPECT_THAT(wide, HasSubstr("workspace  in all"));
  EXPECT_THAT(narrow, Not(HasSubstr("activations  communication  workspace  in all")));
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) {
    const auto characters = std::count_if(line.begin(), line.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
    EXPECT_LE(characters, 80) << line;
  }
}

TEST_F(Cli, BudgetAtSampleCounts) {
  const json budget = json::parse(Plan("show " + kRecipe + " budget --at 0,8,16 --json").out);
  EXPECT_EQ(budget["steps"], 30);
  ASSERT_EQ(budget["at"].size(), 3u);
  EXPECT_EQ(budget["at"][0]["learning_rate"], 0.0);
  EXPECT_EQ(budget["at"][1]["learning_rate"], 0.0015);
  EXPECT_EQ(Plan("show " + kRecipe + " budget --at 0,x").status, 2);
}

TEST_F(Cli, NamesWhatWasProbablyMeant) {
  const std::pair<std::string, const char*> kMistakes[] = {
      {"validat x.yaml", "did you mean `validate`"},
      {"show " + kRecipe + " rank", "did you mean `ranks`"},
      {"validate " + kRecipe + " --jsn", "did you mean `--json`"},
      {"show " + kRecipe + " program --role language.s", "did you mean `language.s0`"},
      {"show " + kRecipe + " ranks --routing choices", "option `--routing` is for `time`"},
      {"show " + kRecipe + " time --routing nowhere", "there is no folder nowhere: give --routing one that "},
      {"explain PW0230", "did you mean"}};
  for (const auto& [arguments, hint] : kMistakes) {
    const Result result = Plan(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.err, HasSubstr(hint)) << arguments;
    EXPECT_THAT(result.err, StartsWith("error: ")) << arguments;
  }
}

TEST_F(Cli, AnswersOptionsAndCommandsOfOtherPrograms) {
  const std::pair<std::string, const char*> kWords[] = {
      {"validate " + kRecipe + " --tensor-model-parallel-size 2",
       "`--tensor-model-parallel-size` of Megatron-LM is the key modules.<name>.parallel.tp of the recipe: give it as "
       "an override, modules.language.parallel.tp=2"},
      {"compile --tp " + kRecipe, "give it as an override, modules.language.parallel.tp=VALUE"},
      {"launch " + kRecipe + " --nproc_per_node=8", "give it as an override, cluster.gpus_per_node=8"},
      {"launch " + kRecipe + " --nnodes 2", "give it as an override, cluster.nodes=2"},
      {"launch " + kRecipe + " --train-iters 9", "budget.train_samples, in samples"},
      {"launch " + kRecipe + " --resume", "goes on from its newest checkpoint"},
      {"launch " + kRecipe + " --devices cpu", "did you mean `--device`"},
      {"status folder --tp 2", "is the key modules.<name>.parallel.tp of the recipe\n"},
      {"init --nodes 2", "did you mean `--gpus`"},
      {"launch " + kRecipe + " --freeze-vit", "modules.<name>.train.backbone: `true` is `frozen`"},
      {"launch " + kRecipe + " --cutoff-len 4096", "give it as an override, batch.sequence_length=4096"},
      {"torchrun x.yaml", "`torchrun` of PyTorch: the launcher tells its ranks"},
      {"grpo x.yaml", "there are no preferences and no rewards"},
      {"train x.yaml", "`plan launch` trains"},
      {"run x.yaml", "`plan launch` trains"},
      {"start x.yaml", "`plan launch` trains"},
      {"resume folder", "`plan launch` into the directory of a run goes on"}};
  for (const auto& [arguments, answer] : kWords) {
    const Result result = Plan(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.err, HasSubstr(answer)) << arguments;
  }
}

TEST_F(Cli, RefusesWrongUsage) {
  for (const std::string& arguments :
       {std::string(""), std::string("show"), "show " + kRecipe, "validate " + kRecipe + " word",
        "compile " + kRecipe + " -o", "launch " + kRecipe, "launch " + kRecipe + " --local --steps 0",
        "launch " + kRecipe + " --local --device tpu", "show " + kRecipe + " ranks --at 3"}) {
    const Result result = Plan(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.out, IsEmpty()) << arguments;
    EXPECT_THAT(result.err, Not(IsEmpty())) << arguments;
  }
}

// A number that 32 bits do not hold was another one.
TEST_F(Cli, NumbersOfOptionsHaveTwoEnds) {
  const auto said = [&](const std::string& arguments) {
    const Result result = Plan(arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    return result.err;
  };
  EXPECT_THAT(said("agent --node 4294967296 head.json"), HasSubstr("at most 1048575; found `4294967296`"));
  EXPECT_THAT(said("agent --node -1 head.json"), HasSubstr("at least 0; found `-1`"));
  EXPECT_THAT(said("show " + kRecipe + " budget --at 0,9223372036854775807"), HasSubstr("at most 1000000000000000"));
  EXPECT_THAT(said("tune " + kRecipe + " --best 1001"), HasSubstr("at most 1000; found `1001`"));
  EXPECT_THAT(said("tune " + kRecipe + " --candidates 99999999999999999999"), HasSubstr("at most 1000000000000"));
  EXPECT_THAT(said("tune " + kRecipe + " --simulations -99999999999999999999"), HasSubstr("at least 1"));
  EXPECT_THAT(said("tune " + kRecipe + " --candidates 1e3"), HasSubstr("at least 1; found `1e3`"));
  EXPECT_THAT(said("init --model nemotron_moe_vlm_20l --gpus 1000001"), HasSubstr("at most 1000000"));
  EXPECT_THAT(said("data stats " + kRecipe + " --samples 1000000000000001"), HasSubstr("at most"));
  EXPECT_THAT(said("data index " + kRecipe + " --jobs 1025"), HasSubstr("at most 1024"));
  EXPECT_THAT(said("launch " + kRecipe + " --local --steps 1000000000000001"), HasSubstr("at most"));
}

TEST_F(Cli, ADryRunPrintsWhatWouldBeSubmitted) {
  const std::string run = folder_ + "/run", launch = "launch " + kRecipe + " --slurm --dry-run --executor " +
                                                     InBuild("bin/fake_rank") + " --run-dir " + run +
                                                     " launch.slurm.partition=long launch.slurm.time=2:00:00";
  const std::string plan = "SLURM_CONF=/dev/null " + InBuild("bin/plan") + " ";  // of a cluster without one
  const Result text = Shell(plan + launch), data = Shell(plan + launch + " --json");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(data.status, 0) << data.err;
  for (const std::string& line : {std::string("#SBATCH --partition=long\n"), std::string("#SBATCH --time=2:00:00\n"),
                                  std::string("#SBATCH --nodes=1\n"), " job '" + run + "'\n"})
    EXPECT_THAT(text.out, HasSubstr(line));
  const json printed = json::parse(data.out);
  EXPECT_THAT(text.out, HasSubstr(printed["script"].get<std::string>()));
  EXPECT_TRUE(printed["launch"]["environment"].contains("PATH"));
  EXPECT_FALSE(std::filesystem::exists(run)) << "a dry run leaves nothing behind";
}

// What validate accepts is a plan that every command reads.
TEST_F(Cli, AControlCharacterIsRefusedWhereverItStands) {
  const std::string escaped = " 'name=\"a\\e[31m\"'", folder = folder_ + "/a\x1b[31m";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(kRecipe, folder + "/r.yaml");
  for (const std::string& words : {kRecipe + escaped, "'" + folder + "/r.yaml'"}) {
    for (const std::string command : {"validate ", "compile "}) {
      const Result result = Plan(command + words);
      EXPECT_EQ(result.status, 1) << words;
      EXPECT_THAT(result.out + result.err, Not(HasSubstr("\x1b")));
      EXPECT_THAT(result.err, AllOf(HasSubstr("control character"), HasSubstr("\\x1b[31m")));
    }
  }
  const Result unknown = Plan("show '" + folder + "/none.json' model");
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, Not(HasSubstr("\x1b")));
}

// A shell inside of a run submits another one.
TEST_F(Cli, ADryRunDoesNotPrintTheCallersSecret) {
  const std::string launch = " launch " + kRecipe + " --slurm --dry-run --executor " + InBuild("bin/fake_rank") +
                             " --run-dir " + folder_ + "/run";
  for (const std::string format : {"", " --json"}) {
    const Result result =
        Shell("PLANWRIGHT_SECRET=sesame PLANWRIGHT_NONCE=this " + InBuild("bin/plan") + launch + format);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_THAT(result.out + result.err, AllOf(Not(HasSubstr("sesame")), Not(HasSubstr("PLANWRIGHT_SECRET"))));
  }
}

TEST_F(Cli, SaysWhereAWordIsNotOneForSlurm) {
  const Result result = Plan("validate " + kRecipe + " 'launch.slurm.partition=$(id)' launch.slurm.time=4h");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("`launch.slurm.partition` is `$(id)`"));
  EXPECT_THAT(result.err, HasSubstr("`launch.slurm.time` is `4h`; sbatch takes MINUTES"));
}

TEST_F(Cli, ProfilesOnlyStepsOfTheRun) {
  const std::string launch = "launch " + kRecipe + " --local --yes --executor " + InBuild("bin/fake_rank") +
                             " --run-dir " + folder_ + "/run --trace ";
  const std::pair<std::string, std::string> kMistakes[] = {
      {"0", "option `--trace` needs a step from 1"},
      {"4-", "found `4-`"},
      {"7-4", "found `7-4`"},
      {"1-17", "at most 16 steps"},
      {"31", "asks for step 31, and the run has 30 steps"},
      {"2-4 --steps 3", "asks for steps 2-4, and the run has 3 steps"}};
  for (const auto& [arguments, hint] : kMistakes) {
    const Result result = Plan(launch + arguments);
    EXPECT_EQ(result.status, 2) << arguments;
    EXPECT_THAT(result.err, HasSubstr(hint)) << arguments;
    EXPECT_THAT(result.out, IsEmpty()) << arguments;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run")) << "refused before anything is written";
}

// The executor here is a stand-in that writes no trace.
TEST_F(Cli, ARunWithoutItsTracesHasFailed) {
  const Result result = Plan("launch " + kRecipe + " --local --yes --executor " + InBuild("bin/fake_rank") +
                             " --trace 2 --run-dir " + folder_ + "/run");
  EXPECT_EQ(result.status, 15);
  EXPECT_THAT(result.err, HasSubstr("its trace is incomplete"));
  EXPECT_THAT(result.err, HasSubstr("trace/rank0000.json"));
}

TEST_F(Cli, HelpIsDataAndCoversEveryCommand) {
  for (const char* command : {"", "validate", "compile", "show", "launch", "explain"}) {
    const Result result = Plan(std::string(command) + " --help");
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.out, HasSubstr("usage: plan"));
    EXPECT_THAT(result.err, IsEmpty());
  }
}

TEST_F(Cli, ExplainsAKind) {
  const Result by_number = Plan("explain PW0203");
  EXPECT_THAT(by_number.out, StartsWith("PW0203 GridDoesNotFit: "));
  EXPECT_THAT(by_number.out, HasSubstr("\nWrong:\n\n    extends: ["));
  EXPECT_EQ(Plan("explain GridDoesNotFit").out, by_number.out);
  EXPECT_THAT(Plan("explain").out, HasSubstr("PW0900 NotBuiltYet"));
  EXPECT_THAT(Plan("explain").out, HasSubstr("PW0407 DecayEndsEarly: (lint) "));
  const json data = json::parse(Plan("explain PW0203 PW0407 --json").out);
  EXPECT_EQ(data["kinds"][0]["name"], "GridDoesNotFit");
  EXPECT_EQ(data["kinds"][1]["lint"], true);
  EXPECT_GT(json::parse(Plan("explain --json").out)["kinds"].size(), 50u);
}

TEST_F(Cli, ExplainsAKeyAndPrintsTheGeneratedPages) {
  EXPECT_THAT(Plan("explain batch.global_samples").out,
              StartsWith("batch.global_samples\n    samples of one optimizer step\n"));
  EXPECT_THAT(Plan("explain modules.language.parallel").out, HasSubstr("modules.<name>.parallel.tp\n"));
  const Result wrong = Plan("explain batch.global_sample");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean `batch.global_samples`"));
  EXPECT_THAT(Plan("explain --markdown").out, StartsWith("# Diagnostics\n"));
  EXPECT_THAT(Plan("explain --reference").out, StartsWith("# Recipe reference\n"));
  EXPECT_THAT(Plan("explain --failures").out, StartsWith("# How a run can fail\n"));
  EXPECT_EQ(json::parse(Plan("explain --schema").out)["$schema"], "http://json-schema.org/draft-07/schema#");
}

TEST_F(Cli, ExplainsWordsTermsAndQuestions) {
  const Result several = Plan("explain learning_rate peak lane");
  EXPECT_EQ(several.status, 0);
  for (const char* text : {"budget.learning_rate.peak\n", "lane (term)\n"}) EXPECT_THAT(several.out, HasSubstr(text));
  const Result field = Plan("explain --micro-batch-size");
  EXPECT_EQ(field.status, 0) << field.err;
  EXPECT_THAT(field.out, HasSubstr("batch.micro_samples, with the same value\n"));
  EXPECT_THAT(field.out, HasSubstr("batch.micro_samples\n    samples of a microbatch"));
  EXPECT_THAT(Plan("explain launch").out, HasSubstr("plan launch\n    runs a plan"));
  EXPECT_THAT(Plan("explain --trace").out, HasSubstr("plan launch --trace STEP[-LAST]\n"));
  const Result question = Plan("explain how do I resume a run");
  EXPECT_EQ(question.status, 0);
  EXPECT_THAT(question.out, HasSubstr("docs/checkpoints.md#before-a-resume"));
  const json found = json::parse(Plan("explain bubble --json").out);
  EXPECT_THAT(found["kinds"], IsEmpty());
  EXPECT_EQ(found["found"][0]["type"], "term");
  EXPECT_EQ(found["found"][0]["by_name"], true);
  EXPECT_EQ(json::parse(Plan("explain memory of gpus --json").out)["found"][0]["by_name"], false);
  for (const char* nothing :
       {"explain xyzzy", "explain --nonsense", "explain PW0203 --nonsense", "explain lane xyz.zy"}) {
    EXPECT_EQ(Plan(nothing).status, 2) << nothing;
    EXPECT_THAT(Plan(nothing).err, StartsWith("error: nothing is called")) << nothing;
    EXPECT_THAT(Plan(nothing).out, IsEmpty()) << nothing;
  }
}

TEST_F(Cli, LintsAreChangedByNumber) {
  const Result warned = Plan("validate " + kRecipe + " budget.train_samples=237");
  EXPECT_EQ(warned.status, 0);
  EXPECT_THAT(warned.err, HasSubstr("warning: "));
  EXPECT_THAT(warned.err, HasSubstr("[PW0409 SamplesPastBudget]"));
  const Result silent = Plan("validate " + kRecipe + " budget.train_samples=237 lints.PW0409=off");
  EXPECT_EQ(silent.status, 0);
  EXPECT_THAT(silent.err, IsEmpty());
  const Result refused = Plan("validate " + kRecipe + " budget.train_samples=237 lints.PW0409=error");
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.err, HasSubstr("error: the last step passes"));
  EXPECT_EQ(Plan("validate " + kRecipe + " lints.PW0203=off").status, 1);
}

TEST_F(Cli, LaunchesOneExecutorARank) {
  const std::string run = folder_ + "/run";
  const Result result =
      Plan("launch " + kRecipe + " --local --yes --json --executor " + InBuild("bin/fake_rank") + " --run-dir " + run);
  EXPECT_EQ(result.status, 0) << result.err;
  const json outcome = json::parse(result.out);
  EXPECT_EQ(outcome["cause"], "done");
  EXPECT_EQ(outcome["run_dir"], run);
  EXPECT_TRUE(std::filesystem::exists(run + "/logs/rank0007.out"));
  EXPECT_EQ(
      Plan("launch " + kRecipe + " --local --yes --executor " + InBuild("bin/fake_rank") + " --run-dir " + run).status,
      2)
      << "the run directory is used";
}

TEST_F(Cli, AFailedRunGivesTheRanksExitStatus) {
  setenv("FAKE_RANK_5", "exit=12", 1);
  const Result result = Plan("launch " + kRecipe + " --local --yes --executor " + InBuild("bin/fake_rank") +
                             " --run-dir " + folder_ + "/run");
  unsetenv("FAKE_RANK_5");
  EXPECT_EQ(result.status, 12);
  EXPECT_THAT(result.err, HasSubstr("error: rank 5 stopped because of its numbers"));
  EXPECT_EQ(json::parse(Read("run/outcome.json"))["rank"], 5);
}

}  // namespace
}  // namespace planwright
