// What `plan launch --slurm` says before it submits a job: all of it with --dry-run, and each mistake before sbatch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class Job : public PlanProgram {
 protected:
  void SetUp() override {
    PlanProgram::SetUp();
    run_ = folder_ + "/run";
  }
  // The command line, with shell variables before it. Slurm's programs are not reached, unless a test makes some.
  ProgramResult Launch(const std::string& words, const std::string& before = "") {
    return Shell("export SLURM_CONF=/dev/null; " + before + " " + InBuild("bin/plan") + " launch " + recipe_ +
                 " --executor " + executor_ + " --run-dir " + run_ + " --slurm " + words);
  }
  ProgramResult DryRun(const std::string& words, const std::string& before = "") {
    return Launch("--dry-run " + words, before);
  }
  void ExpectRefused(const std::string& words, const std::string& why, const std::string& before = "") {
    for (const char* way : {"", "--dry-run "}) {
      const ProgramResult refused = Launch(way + words, before);
      EXPECT_EQ(refused.status, kExitUsage) << way << words << refused.out << refused.err;
      EXPECT_THAT(refused.err, HasSubstr(why)) << way << words;
      EXPECT_FALSE(fs::exists(run_)) << way << words;
    }
  }

  const std::string recipe_ = InSource("recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml");
  const std::string executor_ = InBuild("bin/fake_rank");
  std::string run_;
};

TEST_F(Job, ADryRunShowsAllThatWouldRun) {
  const std::string words =
      "launch.slurm.container=/images/train.sqsh launch.slurm.mounts=/usr/share:/a:ro "
      "launch.env=[NCCL_DEBUG=INFO,TOKEN] "
      "launch.setup='[\"ulimit -c 0\"]'";
  const std::string before = "TOKEN=sesame UCX_TLS=rc";
  const ProgramResult text = DryRun(words, before), data = DryRun("--json " + words, before);
  ASSERT_EQ(text.status, 0) << text.err;
  ASSERT_EQ(data.status, 0) << data.err;
  const json shown = json::parse(data.out);
  const auto words_of = [&](const char* key) { return shown[key].get<std::vector<std::string>>(); };
  EXPECT_THAT(words_of("sbatch"), Contains(run_ + "/job/job.sbatch"));
  std::vector<std::string> all = {"/usr/share:/a:ro", InBuild("bin") + ":" + InBuild("bin") + ":ro", run_ + ":" + run_};
  std::sort(all.begin() + 1, all.end());  // a temporary folder may be anywhere
  const std::string mounts = "--container-mounts=" + all[0] + "," + all[1] + "," + all[2];
  EXPECT_THAT(words_of("srun"), IsSupersetOf({std::string("--container-image=/images/train.sqsh"), mounts,
                                              InBuild("bin/plan"), std::string("agent"), run_ + "/job/head-JOB.json"}));
  EXPECT_THAT(words_of("rank"), IsSupersetOf({std::string("/bin/bash"), executor_, run_ + "/plan.json"}));
  EXPECT_THAT(shown["launch"]["mounts"].dump(), HasSubstr(run_));
  EXPECT_THAT(words_of("libraries_of_system"), Contains("libc.so.6"));
  EXPECT_THAT(words_of("not_passed_on"), Contains("UCX_TLS"));
  EXPECT_EQ(shown["launch"]["environment"]["NCCL_DEBUG"], "INFO");
  EXPECT_EQ(shown["launch"]["environment"]["TOKEN"], "(of this shell)");
  EXPECT_FALSE(shown["launch"]["environment"].contains("UCX_TLS"));
  for (const json& file : shown["files"]) EXPECT_TRUE(file["here"]) << file;
  EXPECT_EQ(shown["ports"].size(), 2u);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr(mounts), HasSubstr("node 0: ranks 0-7"), HasSubstr("\nexec \"$@\"' launch.setup"),
                    HasSubstr("net.ipv4.ip_local_port_range of this machine"),
                    HasSubstr("libraries that the image must have, beside /bin/sh and, for launch.setup, /bin/bash\n"),
                    HasSubstr("no rank gets, as launch.env does not name them\n"), HasSubstr("UCX_TLS")));
  for (const ProgramResult* result : {&text, &data}) EXPECT_THAT(result->out + result->err, Not(HasSubstr("sesame")));
  EXPECT_FALSE(fs::exists(run_)) << "a dry run leaves nothing behind";
}

TEST_F(Job, WithoutAContainerTheNodesMustHaveTheSame) {
  const ProgramResult text = DryRun("");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("libraries that the system of each node must have\n"),
                              HasSubstr("the executor"), Not(HasSubstr("in the container"))));
}

TEST_F(Job, WhatNoContainerWouldSeeIsRefusedWithTheMount) {
  const std::string away = " initialize.from=/no_such/weights launch.slurm.container=/images/train.sqsh";
  ExpectRefused(away, "write launch.slurm.mounts: [FOLDER_OF_THE_NODE:/no_such]");
  EXPECT_EQ(DryRun(away + " launch.slurm.mounts=/lustre:/no_such").status, 0);
  EXPECT_THAT(DryRun(away + " launch.slurm.mounts=/lustre:/no_such").err,
              HasSubstr("warning: launch.slurm.mounts: /lustre is not on this machine"));
}

// As in a cache of the hub, whose files are links into another folder.
TEST_F(Job, LinksAreFollowed) {
  fs::create_directories(folder_ + "/blobs");
  fs::create_directories(folder_ + "/snapshot");
  std::ofstream(folder_ + "/blobs/1234") << "x";
  fs::create_symlink("../blobs/1234", folder_ + "/snapshot/model.safetensors");
  const ProgramResult shown =
      DryRun("--json launch.slurm.container=/images/train.sqsh initialize.from=" + folder_ + "/snapshot");
  EXPECT_NE(shown.status, 0) << "these are no weights";  // and all is shown
  const std::string mounts = json::parse(shown.out)["launch"]["mounts"].dump(), real = fs::canonical(folder_).string();
  EXPECT_THAT(mounts, AllOf(HasSubstr(folder_ + "/snapshot:" + folder_ + "/snapshot:ro"),
                            HasSubstr(real + "/blobs:" + real + "/blobs:ro")));
}

// The launch makes the index of data that is here, before it submits.
TEST_F(Job, AnIndexIsMountedThatTheLaunchWillMake) {
  const std::string shards = InSource("tests/golden/data_fixtures/webdataset");
  const std::string recipe =
      Write("data.yaml", "extends: " + InSource("recipes/nemotron_moe_vlm_tiny.yaml") +
                             "\nmodels: {hybrid_moe_tiny: {vocabulary: 260}, radio_vit_tiny: {max_image: 128}}\n"
                             "batch: {sequence_length: 128}\n"
                             "data: {kind: sources, tokenizer: bytes, max_patches: 100, index: " +
                             folder_ + "/index, sources: [{name: a, kind: webdataset, shards: \"" + shards +
                             "/*.tar\"}]}\n"
                             "launch: {slurm: {container: \"ubuntu:24.04\"}}\n");
  const ProgramResult shown =
      Plan("launch " + recipe + " --executor " + executor_ + " --run-dir " + run_ + " --slurm --dry-run --json");
  ASSERT_EQ(shown.status, 0) << shown.err;
  const std::string mounts = json::parse(shown.out)["launch"]["mounts"].dump();
  for (const std::string& folder : {shards, folder_ + "/index"})
    EXPECT_THAT(mounts, HasSubstr("\"" + folder + ":" + folder + ":ro\""));
  EXPECT_FALSE(fs::exists(folder_ + "/index"));
}

TEST_F(Job, AVariableThatIsNotThereIsNotPassedOn) {
  ExpectRefused("launch.env=NO_SUCH_ONE", "launch.env passes on NO_SUCH_ONE, and this shell has no such variable");
}

// The lines are run before a job is submitted, an agent waited for or a rank started.
TEST_F(Job, ALineThatFailsIsToldBeforeAnythingIsSubmitted) {
  for (const char* way : {"--slurm", "--local --yes", "--agents"}) {
    const ProgramResult refused =
        Shell(InBuild("bin/plan") + " launch " + recipe_ + " --executor " + executor_ + " --run-dir " + run_ + " " +
              way + " launch.setup='[\"unset -f module || true\", \"module load cuda/99\"]'");
    EXPECT_EQ(refused.status, kExitUsage) << refused.out << refused.err;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("launch.setup: line 2: module: command not found"),
                                   HasSubstr("modules are a function of the shell")));
    EXPECT_FALSE(fs::exists(run_)) << way;
  }
  const ProgramResult shown = DryRun("launch.setup='touch " + folder_ + "/ran'");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_FALSE(fs::exists(folder_ + "/ran")) << "a dry run runs nothing of a recipe";
}

TEST_F(Job, ADryRunTellsOfAnExecutorForCpus) {
  const std::string executor = Write("executor", "#!/bin/sh\necho cpu\n");
  fs::permissions(executor, fs::perms::owner_all);
  for (const char* words : {"--dry-run ", ""}) {
    const ProgramResult shown = Plan("launch " + recipe_ + " cluster.gpu=h100_sxm --executor " + executor +
                                     " --run-dir " + run_ + " --slurm " + words);
    EXPECT_EQ(shown.status, *words ? 0 : kExitUsage) << shown.err;
    EXPECT_THAT(shown.err, HasSubstr("was built for CPUs")) << words;
    EXPECT_EQ(shown.err.find("warning: this would be refused: the plan is for h100_sxm GPUs") != std::string::npos,
              *words != 0);
  }
}

TEST_F(Job, APartitionThatIsNotThereIsToldWithThoseThatAre) {
  const std::string programs = folder_ + "/programs";
  fs::create_directory(programs);
  for (const auto& [name, text] : {std::pair("sinfo", "printf 'batch\\nlong\\n'"),
                                   std::pair("sbatch", "[ \"$1\" = --test-only ] || touch submitted")}) {
    std::ofstream(programs + "/" + name) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(programs + "/" + name, fs::perms::owner_all);
  }
  const std::string path = "cd " + folder_ + "; PATH=" + programs + ":$PATH";
  ExpectRefused("launch.slurm.partition=lnog",
                "this cluster has no partition lnog; it has batch, long; did you mean `long`?", path);
  EXPECT_FALSE(fs::exists(folder_ + "/submitted"));
  const ProgramResult good = DryRun("launch.slurm.partition=batch,long", path);
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("sbatch --test-only takes the script"));
}

TEST_F(Job, WhatIsInNoFileSystemIsRefusedWithWhatFetchesIt) {
  const ProgramResult url = Plan("validate " + recipe_ + " initialize.from=s3://bucket/model");
  EXPECT_EQ(url.status, kExitInvalid);
  EXPECT_THAT(url.err, AllOf(HasSubstr("<command line>:1:17: error: `from` is \"s3://bucket/model\"; object stores"),
                             HasSubstr("help: fetch it: aws s3 sync s3://bucket/model model, and write from: model")));
  const std::string hub = "initialize.from=nvidia/Nano-8B lints.PW0111=off";
  EXPECT_EQ(Plan("validate " + recipe_ + " " + hub).status, 0) << "it may be a folder of another machine";
  const ProgramResult weights = Plan("weights " + recipe_ + " " + hub);
  EXPECT_EQ(weights.status, kExitInvalid);
  EXPECT_THAT(weights.out + weights.err,
              AllOf(HasSubstr("  absent  "), HasSubstr("the weights are not here"), Not(HasSubstr("do not fit"))));
  for (const char* way : {"--slurm", "--slurm --dry-run", "--local --yes", "--agents"}) {
    const ProgramResult refused =
        Plan("launch " + recipe_ + " " + hub + " --executor " + executor_ + " --run-dir " + run_ + " " + way);
    EXPECT_EQ(refused.status, kExitUsage) << refused.out << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("hf download nvidia/Nano-8B --local-dir Nano-8B"));
    EXPECT_FALSE(fs::exists(run_)) << way;
  }
}

}  // namespace
}  // namespace planwright::testing
