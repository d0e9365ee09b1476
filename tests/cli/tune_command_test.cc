// `plan tune` and `plan init`: what they print is what the recipes that they write have, and nothing is replaced
// unasked.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::ProgramResult;
using ::testing::StartsWith;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
// A small space, of a device whose speed is known.
const std::string kSmall = kTiny + " cluster.gpu=h100_sxm cluster.gpus_per_node=1";
const std::string kFewKeys = " --fix modules.language.recompute,modules.radio_encoder.recompute,gradients ";

class TuneCommand : public testing::PlanProgram {
 protected:
  json PlanJson(const std::string& arguments) {
    const ProgramResult result = Plan(arguments + " --json");
    EXPECT_EQ(result.status, 0) << arguments << result.err;
    return json::parse(result.out, nullptr, false);
  }
  // The figures that `plan show` prints of a recipe are those of the layout.
  void ExpectFigures(const std::string& recipe, const json& layout) {
    const json time = PlanJson("show " + recipe + " time"), memory = PlanJson("show " + recipe + " memory");
    EXPECT_EQ(time["seconds"], layout["seconds"]);
    EXPECT_EQ(time["tokens_per_second_per_rank"], layout["tokens_per_second_per_rank"]);
    EXPECT_EQ(time["path"][0]["share"], layout["binds_share"]);
    int64_t most = 0;
    for (const json& role : memory["roles"]) most = std::max(most, role["total"].get<int64_t>());
    EXPECT_EQ(most, layout["memory"]);
  }
  std::string InFolder(const std::string& name) const { return folder_ + "/" + name; }
};

TEST_F(TuneCommand, PrintsTheFiguresOfTheRecipeThatItWrites) {
  const json tuned =
      PlanJson("tune " + kSmall + " batch.global_samples=16 --gpus 4 --best 4 --candidates 500 " +
               "--fix modules.language.recompute,modules.radio_encoder.recompute --write " + InFolder("best.yaml"));
  ASSERT_GE(tuned["best"].size(), 2u);
  EXPECT_THAT(tuned["written"], ElementsAre(InFolder("best.yaml")));
  ExpectFigures(InFolder("best.yaml"), tuned["best"][0]);
  const json time = PlanJson("show " + InFolder("best.yaml") + " time");
  EXPECT_EQ(time["hours"], tuned["hours"]);
  EXPECT_EQ(time["rank_hours"], tuned["rank_hours"]);
  EXPECT_EQ(PlanJson("compile " + InFolder("best.yaml") + " -o " + InFolder("p.json"))["digest"],
            tuned["best"][0]["digest"]);
  // The other layouts are those of their changes.
  for (const json& layout : tuned["best"]) {
    EXPECT_EQ(layout["proved"], true);
    std::string call = "compile " + kSmall + " batch.global_samples=16";
    for (const std::string change : layout["changes"]) call += " '" + change + "'";
    EXPECT_EQ(PlanJson(call + " -o " + InFolder("p.json"))["digest"], layout["digest"]);
    ExpectFigures(InFolder("p.json"), layout);
  }
  const ProgramResult diff = Plan("diff " + kSmall + " batch.global_samples=16 " + InFolder("best.yaml"));
  EXPECT_EQ(diff.status, 1);
  EXPECT_THAT(diff.out, HasSubstr("the loss curve does not change"));
  EXPECT_THAT(Read("best.yaml"), AllOf(HasSubstr("# 4 GPUs (h100_sxm, 4 nodes of 1)\n"), HasSubstr("# given"),
                                       HasSubstr("\ncluster: {gpu: h100_sxm, gpus_per_node: 1, nodes: 4}\n"),
                                       HasSubstr("batch: {global_samples: 16")));
}

TEST_F(TuneCommand, ReplacesNothingUnasked) {
  const std::string call = "tune " + kSmall + kFewKeys + "--candidates 3 --write ";
  const std::string file = Write("mine.yaml", "mine");
  const ProgramResult refused = Plan(call + file);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, HasSubstr("mine.yaml exists: name another file, or replace it with --replace"));
  EXPECT_THAT(refused.out, IsEmpty());
  EXPECT_EQ(Read("mine.yaml"), "mine");
  EXPECT_EQ(Plan(call + file + " --replace").status, 0);
  EXPECT_THAT(Read("mine.yaml"), HasSubstr("extends: [" + kTiny + "]"));
  // What it extends it never replaces.
  Shell("cp " + kTiny + " " + InFolder("own.yaml"));
  const ProgramResult itself = Plan("tune " + InFolder("own.yaml") + " --write " + InFolder("own.yaml") + " --replace");
  EXPECT_EQ(itself.status, 2);
  EXPECT_THAT(itself.err, HasSubstr("is the given recipe"));
  EXPECT_EQ(Plan(call + InFolder("best.json")).status, 2);
  EXPECT_EQ(Plan(call + folder_ + "/none/best.yaml").status, 2);
}

TEST_F(TuneCommand, WritesRecipesForLostNodes) {
  const std::string call =
      "tune " + kSmall + kFewKeys + "--candidates 20 --gpus 1,4,2 --write " + InFolder("best.yaml");
  const ProgramResult refused = Plan(call);
  EXPECT_EQ(refused.status, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("add launch.restarts=N"), HasSubstr("add checkpoint.every_steps=N")));
  const ProgramResult tuned = Plan(call + " launch.restarts=8 checkpoint.every_steps=5");
  ASSERT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_THAT(tuned.err, AllOf(HasSubstr("best_1.yaml\n"), HasSubstr("best_2.yaml\n"), HasSubstr("best.yaml\n")));
  EXPECT_THAT(tuned.out, AllOf(StartsWith("GPUs"), HasSubstr("GPU-hours")));
  EXPECT_THAT(Read("best.yaml"), HasSubstr("fallbacks: [best_2.yaml, best_1.yaml]"));
  // A launch accepts them: fewer nodes each, the same curve, with checkpoints.
  const ProgramResult launch = Plan("launch " + InFolder("best.yaml") + " --slurm --dry-run --executor " +
                                    InBuild("bin/fake_rank") + " --run-dir " + InFolder("run"));
  EXPECT_EQ(launch.status, 0) << launch.err;
  const ProgramResult nodes =
      Plan("tune " + kTiny + " cluster.gpus_per_node=8 launch.restarts=8 checkpoint.every_steps=5 " +
           "--gpus 4,2 --write " + InFolder("other.yaml"));
  EXPECT_EQ(nodes.status, 2);
  EXPECT_THAT(nodes.err, HasSubstr("2 and 4 GPUs need as many"));
}

TEST_F(TuneCommand, ComparesNumbersOfGpus) {
  const std::string call = "tune " + kSmall + kFewKeys + "--candidates 20 --gpus 1..4";
  const json scaling = PlanJson(call)["scaling"];
  ASSERT_EQ(scaling.size(), 3u);
  for (const json& one : scaling)
    EXPECT_DOUBLE_EQ(one["rank_hours"], one["hours"].get<double>() * one["gpus"].get<int>());
  EXPECT_THAT(Plan(call + " --html " + InFolder("page.html")).out, AllOf(HasSubstr("\n   1  "), HasSubstr("\n   4  ")));
  EXPECT_THAT(Read("page.html"), AllOf(HasSubstr("id=\"scaling\""), HasSubstr("<svg"), HasSubstr("4 GPUs (h100_sxm")));
  // `-` is stdout, which then has nothing else.
  EXPECT_EQ(Plan(call + " --html -").out, Read("page.html"));
}

TEST_F(TuneCommand, IsQuietInAPipe) {
  const ProgramResult result = Plan("tune " + kSmall + kFewKeys + "--candidates 3");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_THAT(result.out, AllOf(HasSubstr("given"), Not(HasSubstr("\r")), HasSubstr(" candidates: ")));
}

TEST_F(TuneCommand, SaysWhatIsWrong) {
  const auto problem = [&](const std::string& arguments) {
    const ProgramResult result = Plan("tune " + arguments);
    EXPECT_EQ(result.status, 2) << arguments << result.err;
    EXPECT_THAT(result.out, IsEmpty()) << arguments;
    return result.err;
  };
  EXPECT_THAT(problem(kTiny + " --gpus 12 cluster.gpus_per_node=8"), HasSubstr("12 GPUs are not whole nodes of 8"));
  EXPECT_THAT(problem(kTiny + " --gpus x"), HasSubstr("found `x`"));
  EXPECT_THAT(problem(kTiny + " --gpus 1..4 --write " + InFolder("b.yaml")), HasSubstr("a range of GPUs"));
  EXPECT_THAT(problem(kTiny + " --fix modules.langage,batch"), HasSubstr("did you mean `modules.language`"));
  EXPECT_THAT(problem(kTiny + " --seconds 0"), HasSubstr("a number above 0"));
  EXPECT_THAT(problem(kTiny + " --candidates 0"), HasSubstr("at least 1"));
  EXPECT_THAT(problem(kTiny + " --best 0"), HasSubstr("at least 1"));
  EXPECT_THAT(problem(kTiny + " --replace"), HasSubstr("is for --write"));
  EXPECT_THAT(problem(InFolder("plan.json")), HasSubstr("is a compiled plan"));
  // Nothing that was read is written over: the recipe, a file that it extends, or the other file that is written.
  const std::string child = InFolder("child.yaml"), parent = InFolder("parent.yaml");
  std::ofstream(parent) << "extends: [" + kTiny + "]\nname: parent\n";
  std::ofstream(child) << "extends: [parent.yaml]\n";
  const std::string before = Read("parent.yaml");
  EXPECT_THAT(problem(child + " --html " + child), HasSubstr("a file that the recipe was read from"));
  EXPECT_THAT(problem(child + " --write " + parent + " --replace"), HasSubstr("a file that the recipe was read from"));
  EXPECT_THAT(problem(child + " --write " + InFolder("c.yaml") + " --html " + InFolder("c.yaml")),
              HasSubstr("name one file"));
  EXPECT_THAT(Plan("show " + parent + " --html " + parent).err, HasSubstr("is the recipe"));
  EXPECT_THAT(Plan("measure " + parent + " -o " + parent).err, HasSubstr("is the recipe"));
  EXPECT_EQ(Read("parent.yaml"), before);
  EXPECT_THAT(problem(kTiny + " --html - --json"), HasSubstr("both print on stdout"));
  EXPECT_THAT(problem(""), HasSubstr("no recipe is given"));
}

TEST_F(TuneCommand, SaysIfNothingFits) {
  const std::string call =
      "tune " + kTiny +
      " cluster.gpu=other cluster.device.memory=0.001 cluster.device.peak=1 cluster.device.bandwidth=1"
      " cluster.device.link=1 cluster.device.network=1" +
      kFewKeys;
  const ProgramResult result = Plan(call);
  EXPECT_EQ(result.status, 1) << result.err;
  EXPECT_THAT(result.out, AllOf(StartsWith("1 GPU (other, 1 node of 1)\n"), HasSubstr("No candidate fits memory.")));
  const ProgramResult data = Plan(call + " --json");
  EXPECT_EQ(data.status, 1);
  EXPECT_THAT(json::parse(data.out)["best"], IsEmpty());
  EXPECT_EQ(json::parse(data.out)["gpus"], 1);
}

// The reasons are those that `plan validate` gives of the recipe as it is.
TEST_F(TuneCommand, SaysWhatIsWrongWithTheRecipeIfNothingIsValid) {
  const std::string recipe = kSmall + " batch.global_samples=6 batch.micro_samples=4";
  const ProgramResult validated = Plan("validate " + recipe);
  ASSERT_EQ(validated.status, 1);
  const std::string code = validated.err.substr(validated.err.find("[PW"), 7);
  const std::string call = "tune " + recipe + " --fix modules,batch,gradients";
  const ProgramResult result = Plan(call);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.out, AllOf(StartsWith("1 GPU (h100_sxm, 1 node of 1)\n"), HasSubstr("each breaks a rule"),
                                HasSubstr("1 candidate:")));
  EXPECT_THAT(result.err, AllOf(HasSubstr("The recipe as it was given, on 1 GPU"), HasSubstr(code)));
  EXPECT_THAT(json::parse(Plan(call + " --json").out)["problems"][0].dump(), HasSubstr(code.substr(1)));
  // Of several numbers of GPUs one has no layout.
  const ProgramResult scaling = Plan("tune " + kSmall + " --gpus 1,2 --fix modules.language.placement,gradients");
  EXPECT_EQ(scaling.status, 1);
  EXPECT_THAT(scaling.out, AllOf(HasSubstr("2: There is no candidate: with the keys that are fixed")));
}

// On a terminal the command says how far it is; Ctrl-C then ends the search with the best so far.
TEST_F(TuneCommand, PrintsTheBestSoFarAfterCtrlC) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
  const std::string name = ptsname(terminal), output = InFolder("tuned"), plan = InBuild("bin/plan"),
                    recipe = InSource("recipes/nemotron_moe_vlm_54l_33n.yaml"), best = InFolder("best.yaml");
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    const int line = open(name.c_str(), O_RDWR), file = open(output.c_str(), O_WRONLY | O_CREAT, 0644);
    dup2(line, 0), dup2(file, 1), dup2(line, 2);
    execl(plan.c_str(), plan.c_str(), "tune", recipe.c_str(), "--gpus", "264", "--best", "1000", "--seconds", "3600",
          "--write", best.c_str(), nullptr);
    _exit(99);
  }
  std::string shown;
  char chunk[4096];
  while (shown.find("fastest") == std::string::npos) {
    const ssize_t count = read(terminal, chunk, sizeof chunk);
    if (count <= 0) break;  // it ended
    shown.append(chunk, static_cast<size_t>(count));
  }
  kill(child, SIGINT);
  while (read(terminal, chunk, sizeof chunk) > 0) {
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(terminal);
  EXPECT_THAT(shown, AllOf(HasSubstr("264 GPUs: "), HasSubstr(" layouts timed"), HasSubstr(" s left")));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status << shown;
  EXPECT_THAT(Read("tuned"), AllOf(HasSubstr("given"), HasSubstr("The search was ended before")));
  EXPECT_EQ(Plan("validate " + best).status, 0) << "what was found is written";
}

class InitCommand : public TuneCommand {
 protected:
  // The space of real models is large, and these tests are not about the search.
  const std::string few_ = " --candidates 3 --best 1 --fix modules.language.recompute,modules.radio_encoder,gradients ";
};

TEST_F(InitCommand, WritesARecipeThatIsValid) {
  const std::string call = "init --model nemotron_moe_vlm_20l --gpus 8 cluster.gpu=h200_sxm data.seed=7" + few_;
  const json made = PlanJson(call + "-o " + InFolder("mine.yaml"));
  EXPECT_EQ(made["file"], InFolder("mine.yaml"));
  EXPECT_EQ(made["text"], Read("mine.yaml"));
  ExpectFigures(InFolder("mine.yaml"), made["best"][0]);
  EXPECT_EQ(PlanJson("validate " + InFolder("mine.yaml"))["valid"], true);
  EXPECT_THAT(Read("mine.yaml"),
              AllOf(HasSubstr("gpu: h200_sxm}"), HasSubstr("seed: 7"), HasSubstr("nemotron_hybrid_moe_20l:")));
  const ProgramResult again = Plan(call + "-o " + InFolder("mine.yaml"));
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("exists: name another file, or replace it with --replace"));
  EXPECT_EQ(Plan(call + "-o " + InFolder("mine.yaml") + " --replace").status, 0);
}

TEST_F(InitCommand, TakesTheModelsOfAFile) {
  std::filesystem::create_directories(InFolder("models"));
  Shell("cp " + InSource("recipes/models/nemotron_moe_vlm_20l.yaml") + " " + InFolder("models/own.yaml"));
  const ProgramResult made = Plan("init --model " + InFolder("models/own.yaml") + " --gpus 8 cluster.gpu=h200_sxm" +
                                  few_ + "-o " + InFolder("mine.yaml"));
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(Read("mine.yaml"),
              AllOf(HasSubstr("extends: ["), HasSubstr("models/own.yaml]"), Not(HasSubstr("models:\n"))));
  EXPECT_EQ(Plan("validate " + InFolder("mine.yaml")).status, 0);
}

TEST_F(InitCommand, SaysWhatIsWrong) {
  const auto problem = [&](const std::string& arguments, int status = 2) {
    const ProgramResult result = Plan("init " + arguments);
    EXPECT_EQ(result.status, status) << arguments << result.err;
    EXPECT_THAT(result.out, IsEmpty()) << arguments;
    return result.err;
  };
  EXPECT_THAT(problem("--gpus 8"), HasSubstr("--model is not given"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20l"), HasSubstr("--gpus is not given"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20 --gpus 8"), HasSubstr("did you mean `nemotron_moe_vlm_20l`"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20l --gpus 12"), HasSubstr("12 GPUs are not whole nodes of 8"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20l --gpus 0"), HasSubstr("at least 1"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20l --gpus 8 recipe.yaml"), HasSubstr("is not an override"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20l --gpus 8 --fix modules.langage"), HasSubstr("did you mean"));
  EXPECT_THAT(problem("--model " + InFolder("none.yaml") + " --gpus 8"), HasSubstr("there is no such file"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20l --gpus 8 batch.global_sample=4", 1),
              HasSubstr("did you mean `global_samples`"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_54l --gpus 1" + few_, 1),
              AllOf(HasSubstr("no layout was found"), HasSubstr("1 GPU (h100_sxm, 1 node of 1)"), HasSubstr("[PW")));
}

}  // namespace
}  // namespace planwright
