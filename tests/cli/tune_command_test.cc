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
#include <vector>

#include "nlohmann/json.hpp"
#include "tests/cli/plan_program.h"

namespace planwright {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
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
                                       HasSubstr("\ncluster: {nodes: 4, gpus_per_node: 1, gpu: h100_sxm}\n"),
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

// What a page replaces is a page, also of other commands.
TEST_F(TuneCommand, ReplacesNoOtherFileByAPage) {
  const std::string call = "tune " + kSmall + kFewKeys + "--candidates 3 --html ";
  Shell("cp " + kTiny + " " + InFolder("other.yaml"));
  const std::string before = Read("other.yaml"), page = InFolder("page.html");
  for (const std::string& command : {call, "show " + kTiny + " --html "}) {
    const ProgramResult refused = Plan(command + InFolder("other.yaml"));
    EXPECT_EQ(refused.status, 2);
    EXPECT_THAT(refused.err, HasSubstr("other.yaml is there and is no page of `plan`"));
    EXPECT_THAT(refused.out, IsEmpty());
    EXPECT_EQ(Plan(command + page).status, 0);
    EXPECT_EQ(Plan(command + page).status, 0) << "a page is replaced";
  }
  EXPECT_EQ(Read("other.yaml"), before);
  EXPECT_EQ(Plan(call + Write("empty.html", "")).status, 0) << "as mktemp makes it";
  EXPECT_EQ(Plan(call + "/dev/null").status, 0);
  EXPECT_EQ(Plan(call + Write("mine.html", "<!DOCTYPE html>\n<html></html>")).status, 2) << "of somebody else";
}

// A search of this space takes minutes.
TEST_F(TuneCommand, FindsBeforeTheSearchWhatCannotBeWritten) {
  const std::string recipe = InSource("recipes/nemotron_moe_vlm_54l_33n.yaml");
  for (const std::string& option :
       {"--html " + folder_, "--html " + folder_ + "/none/x.html", "--write " + folder_ + "/none/x.yaml",
        "--write " + recipe + "/x.yaml", "--html " + InFolder("x.yaml") + " --write " + folder_ + "/./x.yaml"}) {
    const ProgramResult result = Plan("tune " + recipe + " " + option);
    EXPECT_EQ(result.status, 2) << option << result.err;
    EXPECT_THAT(result.out, IsEmpty()) << option;
  }
  const std::string init = "init --model nemotron_moe_vlm_54l --gpus 264 -o ";
  EXPECT_EQ(Plan(init + folder_ + "/none/x.yaml").status, 2);
  EXPECT_EQ(Plan("tune " + recipe + " cluster.profile=" + InSource("recipes/profiles/h100_sxm.json") +
                 " precision.params=fp64")
                .status,
            1);
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

// With two nodes the recipe lacks a figure.
TEST_F(TuneCommand, KeepsWhatItFoundWhereAnotherNumberHasErrors) {
  const std::string call = "tune " + kTiny +
                           " cluster.gpu=other cluster.gpus_per_node=2 cluster.device.memory=16 cluster.device.peak=1"
                           " cluster.device.bandwidth=2 cluster.device.link=1" +
                           kFewKeys + "--candidates 20 --gpus ";
  const ProgramResult both = Plan(call + "2,4");
  EXPECT_EQ(both.status, 1);
  EXPECT_THAT(both.out, AllOf(HasSubstr("\n   2  "), HasSubstr("4: The recipe has errors on so many GPUs.")));
  EXPECT_THAT(both.err, HasSubstr("lacks network"));
  const json scaling = json::parse(Plan(call + "2,4 --json").out)["scaling"];
  EXPECT_EQ(scaling[0]["best"].empty(), false);
  EXPECT_EQ(scaling[1]["problems"][0]["name"], "MissingKey");
  const ProgramResult one = Plan(call + "4");
  EXPECT_EQ(one.status, 1);
  EXPECT_THAT(one.err, HasSubstr("lacks network")) << "said also of one number";
}

TEST_F(TuneCommand, LeavesAMargin) {
  const json tuned = PlanJson("tune " + kSmall + kFewKeys + "--candidates 20 --margin 2.5 --prefer memory");
  EXPECT_EQ(tuned["margin"], 2'500'000'000);
  EXPECT_EQ(tuned["prefer"], "memory");
  for (const json& layout : tuned["best"])
    EXPECT_LE(layout["memory"].get<int64_t>() + 2'500'000'000, layout["memory_limit"].get<int64_t>());
}

TEST_F(TuneCommand, SaysHowToGoOnAtItsLimit) {
  const std::string call = "tune " + kSmall + kFewKeys + "--simulations ";
  EXPECT_THAT(Plan(call + "1").out, HasSubstr("--simulations N lets it go on"));
  EXPECT_THAT(Plan(call + "1000000").out, Not(HasSubstr("ended early")));
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
  EXPECT_THAT(problem(kTiny + " --simulations 0"), HasSubstr("at least 1"));
  EXPECT_THAT(problem(kTiny + " --prefer speed"), HasSubstr("`--prefer` is simple or memory; found `speed`"));
  EXPECT_THAT(problem(kTiny + " --margin -1"), HasSubstr("needs GB, a number from 0 to 1000; found `-1`"));
  EXPECT_THAT(problem(kSmall + " --margin 100"), HasSubstr("a margin of 100 GB leaves nothing of the device's 84.9"));
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
  EXPECT_THAT(result.err, AllOf(StartsWith("The recipe as it was given is refused:\n" + validated.err.substr(0, 40)),
                                HasSubstr(code), Not(HasSubstr("on 1 GPU"))))
      << "told once, before the search";
  EXPECT_THAT(json::parse(Plan(call + " --json").out)["problems"][0].dump(), HasSubstr(code.substr(1)));
  // Of several numbers of GPUs one has no layout.
  const ProgramResult scaling = Plan("tune " + kSmall + " --gpus 1,2 --fix modules.language.placement,gradients");
  EXPECT_EQ(scaling.status, 1);
  EXPECT_THAT(scaling.out, AllOf(HasSubstr("2: There is no candidate: with the keys that are fixed")));
}

// What no layout ends, ends the command: a search of this space takes minutes.
TEST_F(TuneCommand, DoesNotSearchWhatNoLayoutCanMend) {
  const std::string recipe = InSource("recipes/nemotron_moe_vlm_54l_33n.yaml");
  for (const std::string& override : {"data.text_tokens=100000", "budget.learning_rate.min=1.0",
                                      "data.image_token=131072", "optimizer.betas=[0.9, 1]"}) {
    const std::string words = recipe + " '" + override + "'";
    const ProgramResult validated = Plan("validate " + words), tuned = Plan("tune " + words);
    EXPECT_EQ(validated.status, 1) << override;
    EXPECT_EQ(tuned.status, 1) << override;
    EXPECT_EQ(tuned.err, validated.err);
    EXPECT_THAT(tuned.out, IsEmpty());
    EXPECT_EQ(Plan("tune " + words + " --json").out, Plan("validate " + words + " --json").out);
  }
  const ProgramResult init = Plan("init --model nemotron_moe_vlm_54l --gpus 264 data.text_tokens=100000");
  EXPECT_EQ(init.status, 1);
  EXPECT_THAT(init.err, HasSubstr("PW0603"));
  EXPECT_THAT(init.out, IsEmpty());
}

// The layout alone is refused: that is told before others are searched.
TEST_F(TuneCommand, SaysBeforeTheSearchThatTheGivenLayoutIsRefused) {
  const std::string words = kSmall + kFewKeys + " batch.global_samples=6 batch.micro_samples=4";
  const ProgramResult tuned = Plan("tune " + words);
  EXPECT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_THAT(tuned.err, AllOf(StartsWith("The recipe as it was given is refused:\n"), HasSubstr("[PW0401"),
                               EndsWith("Searched are layouts with which it is valid.\n")));
  EXPECT_THAT(tuned.out, HasSubstr("micro 6"));
  EXPECT_THAT(Plan("tune " + words + " --json").err, IsEmpty());
}

TEST_F(TuneCommand, EndsAfterItsTimeAndSaysSo) {
  const std::string call = "tune " + InSource("recipes/nemotron_moe_vlm_54l_33n.yaml") + " --best 1 --seconds 0.001";
  const ProgramResult tuned = Plan(call);
  EXPECT_EQ(tuned.status, 0) << tuned.err;
  EXPECT_THAT(tuned.out, HasSubstr("The search ended after 0.001 s (--seconds S lets it go on)"));
  EXPECT_EQ(json::parse(Plan(call + " --json").out)["ended_early"], "0.001 s were over; --seconds S lets it go on");
  EXPECT_THAT(Plan("tune --help").out, HasSubstr("with the best so far (default: 600)"));
  for (const std::string& seconds : {"1e-400", "1e300", "nan", "inf", "-1", "1e9x"})
    EXPECT_EQ(Plan("tune " + kTiny + " --seconds " + seconds).status, 2) << seconds;
}

// On a terminal the command says how far it is; Ctrl-C then ends the search with the best so far.
class EndedSearch : public TuneCommand {
 protected:
  // Ends it when the line on the terminal names a layout. Stdout is in the file "tuned".
  void Run(std::vector<std::string> arguments) {
    const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_TRUE(terminal >= 0 && grantpt(terminal) == 0 && unlockpt(terminal) == 0);
    const std::string name = ptsname(terminal), output = InFolder("tuned");
    arguments.insert(arguments.begin(),
                     {InBuild("bin/plan"), "tune", InSource("recipes/nemotron_moe_vlm_54l_33n.yaml")});
    std::vector<char*> words;
    for (std::string& word : arguments) words.push_back(word.data());
    words.push_back(nullptr);
    const pid_t child = fork();
    if (child == 0) {
      setsid();
      const int line = open(name.c_str(), O_RDWR), file = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
      dup2(line, 0), dup2(file, 1), dup2(line, 2);
      execv(words[0], words.data());
      _exit(99);
    }
    shown_.clear();
    char chunk[4096];
    while (shown_.find("fastest") == std::string::npos) {
      const ssize_t count = read(terminal, chunk, sizeof chunk);
      if (count <= 0) break;  // it ended
      shown_.append(chunk, static_cast<size_t>(count));
    }
    kill(child, SIGINT);
    while (read(terminal, chunk, sizeof chunk) > 0) {
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    close(terminal);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status << shown_;
  }

  std::string shown_;  // on the terminal, before the signal
};

TEST_F(EndedSearch, PrintsTheBestSoFar) {
  const std::string best = InFolder("best.yaml");
  Run({"--gpus", "264", "--best", "1000", "--seconds", "3600", "--write", best});
  EXPECT_THAT(shown_, AllOf(HasSubstr("264 GPUs: "), HasSubstr(" layouts timed"), HasSubstr(" s left")));
  EXPECT_THAT(Read("tuned"), AllOf(HasSubstr("given"), HasSubstr("The search was ended before")));
  EXPECT_EQ(Plan("validate " + best).status, 0) << "what was found is written";
}

// The rows that were found stay, and the others are named.
TEST_F(EndedSearch, SaysWhichNumbersOfGpusItDidNotSearch) {
  Run({"--gpus", "264,272,280", "--best", "1", "--html", InFolder("page.html")});
  // Nobody asked for a limit: the command says before the search which it has.
  EXPECT_THAT(shown_, AllOf(HasSubstr("264 GPUs: about "), HasSubstr(" layouts. The search may take minutes, and ends "
                                                                     "after 600 s with the best so far (--seconds S")));
  EXPECT_THAT(Read("tuned"), AllOf(HasSubstr("\n 264  "), HasSubstr("264: The search was ended before its time"),
                                   HasSubstr("not searched\n"), HasSubstr("272: It was not searched"),
                                   HasSubstr("280: It was not searched: the command was ended before.")));
  EXPECT_THAT(Read("page.html"), AllOf(HasSubstr("264 GPUs"), HasSubstr("280 GPUs (h100_sxm, 35 nodes of 8)"),
                                       HasSubstr("It was not searched")));
  Run({"--gpus", "264..528", "--best", "1", "--json"});
  const json scaling = json::parse(Read("tuned"), nullptr, false)["scaling"];
  ASSERT_EQ(scaling.size(), 2u);
  EXPECT_EQ(scaling[0]["best"].size(), 1u);
  EXPECT_EQ(scaling[1]["gpus"], 528);
  EXPECT_EQ(scaling[1]["ended_early"], "not searched");
  EXPECT_TRUE(scaling[1]["gap"].is_null());
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
  EXPECT_EQ(Plan("fmt --check " + InFolder("mine.yaml")).status, 0);
  EXPECT_THAT(Read("mine.yaml"),
              AllOf(HasSubstr("gpu: h200_sxm}"), HasSubstr("seed: 7"), HasSubstr("nemotron_hybrid_moe_20l:")));
  const ProgramResult again = Plan(call + "-o " + InFolder("mine.yaml"));
  EXPECT_EQ(again.status, 2);
  EXPECT_THAT(again.err, HasSubstr("exists: name another file, or replace it with --replace"));
  EXPECT_EQ(Plan(call + "-o " + InFolder("mine.yaml") + " --replace").status, 0);
}

// Whatever is overridden: it is refused, or the recipe is valid and has what was asked for.
TEST_F(InitCommand, WhatItPrintsIsValid) {
  const auto made = [&](const std::string& arguments) {
    // Little is open but placing and ep.
    const ProgramResult result = Plan(
        "init --model " + arguments +
        " --candidates 3 --best 1 --fix gradients,batch,modules.radio_encoder.recompute,modules.language.recompute,"
        "modules.radio_encoder.parallel,modules.language.parallel.pp,modules.language.parallel.tp,"
        "modules.language.parallel.cp,modules.language.parallel.expert_tp");
    EXPECT_EQ(result.status, 0) << arguments << result.err;
    const ProgramResult valid = Plan("validate " + Write("made.yaml", result.out));
    EXPECT_EQ(valid.status, 0) << arguments << valid.err;
    EXPECT_THAT(valid.err, Not(HasSubstr("IdleGpus"))) << arguments;
    return result.out;
  };
  const std::string small = "nemotron_moe_vlm_20l cluster.gpu=h200_sxm --gpus 8 ";
  EXPECT_THAT(made(small + "models.radio_vit_h.layers=16 models.nemotron_hybrid_moe_20l.moe.experts=64"),
              AllOf(HasSubstr("layers: 16"), HasSubstr("experts: 64"), Not(HasSubstr("layers: 32"))));
  EXPECT_THAT(made(small + "'models.nemotron_hybrid_moe_20l.pattern=\"MEM*\"' cluster.nodes=2"),
              AllOf(HasSubstr("\"MEM*\""), HasSubstr("cluster: {nodes: 2, gpus_per_node: 4,")));
  EXPECT_THAT(made("nemotron_moe_vlm_20l cluster.gpu=h200_sxm --gpus 12 cluster.gpus_per_node=4"),
              HasSubstr("cluster: {nodes: 3, gpus_per_node: 4,"));
  EXPECT_THAT(made("nemotron_moe_vlm_54l --gpus 64 models.radio_vit_h.layers=16 batch.global_samples=768"),
              AllOf(HasSubstr("cluster: {nodes: 8, gpus_per_node: 8,"), HasSubstr("layers: 16")));
  std::filesystem::create_directories(InFolder("models"));
  Shell("cp " + InSource("recipes/models/nemotron_moe_vlm_20l.yaml") + " " + InFolder("models/own.yaml"));
  EXPECT_THAT(made(InFolder("models/own.yaml") + " cluster.gpu=h200_sxm --gpus 8 models.radio_vit_h.layers=16"),
              HasSubstr("layers: 16"));
}

// The first recipe itself does not fit. What does is known before a candidate is looked at.
TEST_F(InitCommand, BeginsWithALayoutThatFits) {
  const json made = PlanJson(
      "init --model nemotron_moe_vlm_54l --gpus 136 --candidates 1 --best 1 --fix gradients,batch,"
      "modules.radio_encoder.parallel,modules.radio_encoder.recompute,modules.language.parallel.cp,"
      "modules.language.parallel.expert_tp,modules.language.parallel.dispatch,"
      "modules.language.parallel.overlap_dispatch");
  EXPECT_TRUE(made["given"].is_null());
  ASSERT_FALSE(made["best"].empty());
  EXPECT_LT(made["best"][0]["seconds"].get<double>(), 8);
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
              AllOf(HasSubstr("no layout was found"), HasSubstr("1 GPU (h100_sxm, 1 node of 1)"),
                    HasSubstr("<first recipe>:"), HasSubstr("[PW"), Not(HasSubstr("plan-init-"))));
  EXPECT_TRUE(json::parse(Plan("init --model nemotron_moe_vlm_54l --gpus 1 --json" + few_).out)["text"].is_null());
  // What overrides say of the cluster has as many GPUs.
  const std::string small = "--model nemotron_moe_vlm_20l --gpus 8 ";
  EXPECT_THAT(problem(small + "cluster.nodes=3"), HasSubstr("no cluster of cluster.nodes=3 has so many GPUs"));
  EXPECT_THAT(problem(small + "cluster.nodes=2 cluster.gpus_per_node=8"),
              HasSubstr("no cluster of cluster.nodes=2 and cluster.gpus_per_node=8"));
  EXPECT_THAT(problem("--model nemotron_moe_vlm_20l --gpus 4 cluster.gpus_per_node=8"), HasSubstr("--gpus` is 4"));
  EXPECT_THAT(problem(small + "--replace"), HasSubstr("is for -o"));
  EXPECT_THAT(problem("--model " + kTiny + " --gpus 8"), HasSubstr("of a whole recipe `plan tune " + kTiny));
}

}  // namespace
}  // namespace planwright
