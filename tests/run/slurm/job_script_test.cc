#include "planner/run/slurm/job_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "planner/run/slurm/slurm_commands.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Plan SmallPlan() {
  Plan plan;
  plan.name = "vlm $(touch x)";
  plan.world_size = 12;
  plan.cluster = {.nodes = 2, .gpus_per_node = 8, .gpu = "h100_sxm"};
  return plan;
}
const JobScript kJob = {.program = "/opt/planwright/bin/plan", .run_dir = "/data/runs/a", .signal_seconds = 75};

TEST(JobScript, IsOptionsAndOneFixedLine) {
  Plan plan = SmallPlan();
  plan.launch.partition = "batch,long";
  plan.launch.account = "team";
  plan.launch.qos = "high";
  plan.launch.constraint = "a&b";
  plan.launch.time = "1-04:00:00";
  const absl::StatusOr<std::string> script = RenderJobScript(plan, kJob);
  ASSERT_TRUE(script.ok()) << script.status();
  EXPECT_EQ(*script, R"(#!/bin/sh
#SBATCH --job-name=vlm---touch-x-
#SBATCH --partition=batch,long
#SBATCH --account=team
#SBATCH --qos=high
#SBATCH --constraint=a&b
#SBATCH --time=1-04:00:00
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --signal=B:USR1@75
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --export=NONE
#SBATCH --output=/data/runs/a/job/slurm-%j.log
exec '/opt/planwright/bin/plan' job '/data/runs/a'
)");
}

TEST(JobScript, OtherOptionsAreThoseOfTheRecipe) {
  Plan plan = SmallPlan();
  plan.launch.options = {"--exclude=n17", "--nodelist=n[0-1]", "--hold"};
  EXPECT_THAT(*RenderJobScript(plan, kJob),
              HasSubstr("\n#SBATCH --exclude=n17\n#SBATCH --nodelist=n[0-1]\n#SBATCH --hold\n"));
}

// How a cluster counts its GPUs and cores is asked for in its own words, by the job and by the step of its agents.
TEST(JobScript, ResourcesAreThoseOfTheRecipe) {
  Plan plan = SmallPlan();
  plan.launch.gres = "gpu:h100:8,nvme:1";
  plan.launch.cpus_per_task = 96;
  plan.launch.reservation = "big";
  const std::string script = *RenderJobScript(plan, kJob);
  for (const char* line : {"#SBATCH --gres=gpu:h100:8,nvme:1\n", "#SBATCH --cpus-per-task=96\n",
                           "#SBATCH --reservation=big\n", "#SBATCH --exclusive\n"})
    EXPECT_THAT(script, HasSubstr(line));
  EXPECT_THAT(script, Not(HasSubstr("--gpus-per-node")));
  EXPECT_THAT(*AgentStepCommand(plan, 2, kJob, "/f"),
              ElementsAre("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--export=ALL", "--cpu-bind=none",
                          "--kill-on-bad-exit=0", "--cpus-per-task=96", "--gres=gpu:h100:8,nvme:1",
                          "/opt/planwright/bin/plan", "agent", "/f"));
  // A cluster that counts no GPUs gives whole nodes.
  plan.launch.gres = "none";
  EXPECT_THAT(*RenderJobScript(plan, kJob), AllOf(Not(HasSubstr("gres")), Not(HasSubstr("gpus-per-node"))));
  EXPECT_THAT(*AgentStepCommand(plan, 2, kJob, "/f"), Not(Contains(HasSubstr("gpus"))));
  // Other resources are asked for beside the GPUs of the plan.
  plan.launch.gres = "nvme:1";
  EXPECT_THAT(*RenderJobScript(plan, kJob), HasSubstr("#SBATCH --gpus-per-node=8\n#SBATCH --gres=nvme:1\n"));
}

TEST(JobScript, GpusOfAnotherNumberAreRefused) {
  Plan plan = SmallPlan();
  const auto refusal = [&](const std::string& gres) {
    plan.launch.gres = gres;
    return std::string(RenderJobScript(plan, kJob).status().message());
  };
  EXPECT_THAT(refusal("gpu:h100:4"), AllOf(HasSubstr("4 GPUs of each node"), HasSubstr("write gres: gpu:h100:8")));
  EXPECT_THAT(refusal("gpu"), AllOf(HasSubstr("1 GPU of each node"), HasSubstr("write gres: gpu:8")));
  EXPECT_THAT(refusal("gpu:h100"), HasSubstr("write gres: gpu:h100:8"));
  EXPECT_THAT(refusal("nvme:1,gpu:h100:4"), HasSubstr("write gres: gpu:h100:8,nvme:1"));
  EXPECT_EQ(refusal("gpu:8"), "");
  EXPECT_EQ(refusal("gpu:a:4,gpu:b:4"), "");
  plan.cluster.gpu = "none";
  EXPECT_THAT(refusal("gpu:8"), HasSubstr("ranks compute on CPUs"));
  EXPECT_THAT(refusal("none"), HasSubstr("ranks compute on CPUs"));
  EXPECT_EQ(refusal("nvme:1"), "");
}

// What the script says already, however it is written, and what would change whom sbatch answers.
TEST(JobScript, OptionsThatThePlanGivesAreRefused) {
  Plan plan = SmallPlan();
  for (const std::string option : {"--nodes=3",
                                   "--job-name=a",
                                   "--ntasks-per-node=8",
                                   "--gpus-per-node=4",
                                   "--gres=gpu:h100:8",
                                   "--exclusive=user",
                                   "--oversubscribe",
                                   "--array=1-10",
                                   "--clusters=far",
                                   "--uid=1",
                                   "--mem=10G",
                                   "--signal=B:TERM@9",
                                   "--no-requeue",
                                   "--open-mode=truncate",
                                   "--export=ALL",
                                   "--container-image=a",
                                   "--container-mounts=/a:/a",
                                   "--no-container-mount-home",
                                   "--output=x.log",
                                   "--time=5",
                                   "--partition=a",
                                   "--wrap=x",
                                   "--wait",
                                   "--outp=x.log",
                                   "--node=3"}) {
    plan.launch.options = {option};
    const absl::Status status = RenderJobScript(plan, kJob).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("launch.slurm.options: `" + option + "`: ")) << option;
  }
  plan.launch.options = {"--comment=a", "--comment=b"};
  EXPECT_THAT(std::string(RenderJobScript(plan, kJob).status().message()), HasSubstr("has --comment twice"));
  // Of ranks on CPUs nobody else says how much memory their jobs get.
  plan.cluster.gpu = "none";
  plan.launch.options = {"--mem=10G", "--exclusive"};
  EXPECT_THAT(*RenderJobScript(plan, kJob), HasSubstr("#SBATCH --mem=10G\n#SBATCH --exclusive\n"));
}

// Each option that the script has is one that options may not have.
TEST(JobScript, AllItsOptionsAreItsOwn) {
  for (const char* gpu : {"none", "h100_sxm"}) {
    Plan plan = SmallPlan();
    plan.cluster.gpu = gpu;
    plan.launch.partition = plan.launch.account = plan.launch.qos = plan.launch.constraint = "x";
    plan.launch.reservation = "x", plan.launch.gres = "x:1", plan.launch.cpus_per_task = 9;
    plan.launch.time = "1:00:00";
    plan.launch.fallbacks = {"smaller.yaml"};
    const std::string script = *RenderJobScript(plan, kJob);
    int options = 0;
    for (size_t at = 0; (at = script.find("#SBATCH ", at)) != std::string::npos; ++options) {
      at += std::string("#SBATCH ").size();
      plan.launch.options = {script.substr(at, script.find('\n', at) - at)};
      EXPECT_FALSE(RenderJobScript(plan, kJob).ok()) << plan.launch.options[0];
    }
    EXPECT_GE(options, 14);
  }
}

TEST(JobScript, ATimeThatIsOverBeforeAStepIsRefused) {
  Plan plan = SmallPlan();
  for (const std::string time : {"3", "3:29", "0:03:29", "0-0:3"}) {
    plan.launch.time = time;
    const absl::Status status = RenderJobScript(plan, kJob).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("launch.slurm.time is `" + time + "`")) << time;
    EXPECT_THAT(std::string(status.message()), HasSubstr("at least 210 s")) << time;
  }
  for (const std::string time : {"0", "3:30", "4", "0-1", "1-0", "0-00:04"}) {
    plan.launch.time = time;
    EXPECT_TRUE(RenderJobScript(plan, kJob).ok()) << time;
  }
}

TEST(JobScript, RanksOnCpusGetCores) {
  Plan plan = SmallPlan();
  plan.cluster.gpu = "none";
  EXPECT_THAT(*RenderJobScript(plan, kJob),
              HasSubstr("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=1\n#SBATCH --cpus-per-task=8\n"));
}

TEST(JobScript, AJobWithFallbacksOutlivesANode) {
  Plan plan = SmallPlan();
  plan.launch.fallbacks = {"smaller.yaml"};
  EXPECT_THAT(*RenderJobScript(plan, kJob), HasSubstr("#SBATCH --no-kill\n"));
}

// Whatever a shell, sbatch or srun could take for something else.
const char* const kHostile[] = {"$(touch x)", "`id`", "a b",   "a;b",     "a|sh",  "a\n#SBATCH --wrap=x",
                                "--wrap=x",   "-p",   "'",     "\"",      "a\\b",  "a>b",
                                "a<b",        "~",    "*",     "a\tb",    "{a,b}", "é",
                                "a\x1b[0m",   "!!",   "a#b c", "${HOME}", "a\rb"};

TEST(JobScript, NothingElseThanPlainWordsIsAnOption) {
  for (const char* value : kHostile) {
    for (std::string LaunchPlan::*field : {&LaunchPlan::partition, &LaunchPlan::account, &LaunchPlan::qos,
                                           &LaunchPlan::reservation, &LaunchPlan::gres}) {
      Plan plan = SmallPlan();
      plan.launch.*field = value;
      const absl::StatusOr<std::string> script = RenderJobScript(plan, kJob);
      ASSERT_FALSE(script.ok()) << value;
      EXPECT_THAT(std::string(script.status().message()), HasSubstr(std::string("`") + value + "`"));
    }
    Plan plan = SmallPlan();
    for (const std::string option : {value, (std::string("--comment=") + value).c_str()}) {
      if (option == "--comment=-p" || option == "--comment=--wrap=x" || option == "--comment=*") continue;  // a value
      plan.launch.options = {option};
      EXPECT_FALSE(RenderJobScript(plan, kJob).ok()) << option;
    }
    plan = SmallPlan();
    plan.launch.time = value;
    EXPECT_FALSE(RenderJobScript(plan, kJob).ok()) << value;
    plan = SmallPlan();
    plan.launch.container = value;
    EXPECT_FALSE(AgentStepCommand(plan, 2, kJob, "/f").ok()) << value;
    JobScript job = kJob;
    job.run_dir = std::string("/data/") + value + "/x";
    const bool harmless = std::string(value) == "-p" || std::string(value) == "--wrap=x";  // not at the beginning
    if (!harmless) {
      EXPECT_FALSE(RenderJobScript(SmallPlan(), job).ok()) << value;
    }
  }
}

TEST(JobScript, AnyNameOfAPlanIsAJobName) {
  for (const char* name : kHostile) {
    Plan plan = SmallPlan();
    plan.name = name;
    EXPECT_TRUE(RenderJobScript(plan, kJob).ok()) << name;
  }
}

// They would come before what the script says.
TEST(Sbatch, IsCalledWithoutVariablesOfItsOwn) {
  EXPECT_THAT(SbatchCommand({"--parsable", "a"}), ElementsAre("sbatch", "--parsable", "a"));
  setenv("SBATCH_TIMELIMIT", "1", 1), setenv("SBATCH_EXPORT", "ALL", 1);
  EXPECT_THAT(SbatchVariables(), ElementsAre("SBATCH_EXPORT", "SBATCH_TIMELIMIT"));
  EXPECT_THAT(SbatchCommand({"--parsable", "a"}),
              ElementsAre("env", "-u", "SBATCH_EXPORT", "-u", "SBATCH_TIMELIMIT", "sbatch", "--parsable", "a"));
  unsetenv("SBATCH_TIMELIMIT"), unsetenv("SBATCH_EXPORT");
}

TEST(AgentStep, OneAgentOnEachNode) {
  EXPECT_THAT(*AgentStepCommand(SmallPlan(), 2, kJob, "/data/runs/a/job/head-7.json"),
              ElementsAre("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--export=ALL", "--cpu-bind=none",
                          "--kill-on-bad-exit=0", "--gpus-per-node=8", "/opt/planwright/bin/plan", "agent",
                          "/data/runs/a/job/head-7.json"));
}

// pyxis would look for it in a registry, or beside the run.
TEST(AgentStep, AnImageThatIsAFileHasAnAbsolutePath) {
  Plan plan = SmallPlan();
  for (const char* image : {"train.sqsh", "images/train.sqsh", "./train.sqsh", "../train", "images/train.sqfs"}) {
    plan.launch.container = image;
    EXPECT_THAT(std::string(AgentStepCommand(plan, 2, kJob, "/f").status().message()),
                HasSubstr("a file is named by its absolute path"))
        << image;
  }
  for (const char* image :
       {"/images/train.sqsh", "/images/train", "ubuntu:24.04", "nvcr.io#nvidia/pytorch:25.01-py3"}) {
    plan.launch.container = image;
    EXPECT_TRUE(AgentStepCommand(plan, 2, kJob, "/f").ok()) << image;
  }
}

TEST(AgentStep, AContainerHasTheMountsOfTheJob) {
  Plan plan = SmallPlan();
  plan.cluster.gpu = "none";
  plan.launch.container = "registry.example.com#team/train:2.1";
  JobScript job = kJob;
  job.mounts = {"/data/shards:/shards:ro", "/data/runs/a:/data/runs/a"};
  EXPECT_THAT(
      *AgentStepCommand(plan, 2, job, "/f"),
      ElementsAre("srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--export=ALL", "--cpu-bind=none",
                  "--kill-on-bad-exit=0", "--cpus-per-task=8", "--container-image=registry.example.com#team/train:2.1",
                  "--container-mounts=/data/shards:/shards:ro,/data/runs/a:/data/runs/a", "/opt/planwright/bin/plan",
                  "agent", "/f"));
}

}  // namespace
}  // namespace planwright
