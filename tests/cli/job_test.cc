// What `plan launch --slurm` says before it submits a job: all of it with --dry-run, and each mistake before sbatch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
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

  // Programs of a Slurm of this test alone, and what makes a shell find them.
  std::string Programs(const std::vector<std::pair<std::string, std::string>>& texts) {
    const std::string programs = folder_ + "/programs";
    fs::create_directories(programs);
    for (const auto& [name, text] : texts) {
      std::ofstream(programs + "/" + name) << "#!/bin/sh\n" << text << "\n";
      fs::permissions(programs + "/" + name, fs::perms::owner_all);
    }
    return "cd " + folder_ + "; PATH=" + programs + ":$PATH";
  }
  // A run directory as a submission leaves it.
  void Submitted() {
    fs::create_directories(run_ + "/job");
    std::ofstream(run_ + "/job/launch.json") << "{}";
    std::ofstream(run_ + "/job/number") << "7\n";
    std::ofstream(run_ + "/job/slurm-7.log") << "exec: /moved/plan: not found\n";
  }
  ProgramResult Status(const std::string& before, const std::string& words = "") {
    return Shell(before + " " + InBuild("bin/plan") + " status " + run_ + " " + words);
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
  EXPECT_EQ(shown["rank_variables"], (json{{"NCCL_DEBUG", "INFO"}, {"TOKEN", "(of this shell)"}}));
  EXPECT_EQ(shown["launch"]["passed_on"]["TOKEN"], "(of this shell)");
  for (const char* name : {"NCCL_DEBUG", "TOKEN"}) {
    EXPECT_FALSE(shown["launch"]["environment"].contains(name)) << "it is for ranks, not for head, srun and agents";
  }
  EXPECT_FALSE(shown["launch"]["environment"].contains("UCX_TLS"));
  for (const json& file : shown["files"]) {
    EXPECT_TRUE(file["here"]) << file;
    EXPECT_EQ(file["made"], file["what"] == "the run directory") << file;
  }
  EXPECT_EQ(shown["ports"].size(), 2u);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr(mounts), HasSubstr("node 0: ranks 0-7"), HasSubstr(" TERM; exec \"$@\"' launch.setup"),
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
  const std::string path = Programs({{"sinfo", "printf 'batch*|infinite|64\\nlong|infinite|64\\n'"},
                                     {"sbatch", "[ \"$1\" = --test-only ] || touch submitted"}});
  ExpectRefused("launch.slurm.partition=lnog",
                "this cluster has no partition lnog; it has batch, long; did you mean `long`?", path);
  EXPECT_FALSE(fs::exists(folder_ + "/submitted"));
  const ProgramResult good = DryRun("launch.slurm.partition=batch,long", path);
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("sbatch --test-only takes the script"));
}

TEST_F(Job, WhatTheClusterDoesNotHaveIsToldBeforeSbatch) {
  const std::string path = Programs({{"sinfo", "echo 'batch*|1:00:00|4'"},
                                     {"srun", "echo '  --container=PATH  an OCI bundle'"},
                                     {"sbatch", "[ \"$1\" = --test-only ] || touch submitted"}});
  ExpectRefused("launch.slurm.time=2:00:00 launch.slurm.cpus_per_task=4",
                "launch.slurm.time is `2:00:00`, and partition batch gives a job 01:00:00 at most", path);
  ExpectRefused("launch.slurm.cpus_per_task=5", "and the largest node of partition batch has 4 cores", path);
  ExpectRefused("launch.slurm.cpus_per_task=4 launch.slurm.container=ubuntu:24.04",
                "launch.slurm.container needs pyxis, a plugin of Slurm, and srun has no --container-image here", path);
  EXPECT_FALSE(fs::exists(folder_ + "/submitted"));
  const std::string with_pyxis = Programs({{"srun", "echo '      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]'"}});
  EXPECT_EQ(DryRun("launch.slurm.cpus_per_task=4 launch.slurm.container=ubuntu:24.04", with_pyxis).status, 0);
}

TEST_F(Job, AControllerThatDoesNotAnswerIsNotWaitedForForEver) {
  const std::string frozen = "export PLANWRIGHT_TIMEOUT_SECONDS=1; ";
  ExpectRefused("", "sinfo has not answered within 1 s; ask whether the controller of Slurm does: scontrol ping",
                frozen + Programs({{"sinfo", "sleep 100000"}, {"sbatch", "touch submitted"}}));
  EXPECT_FALSE(fs::exists(folder_ + "/submitted"));
  const ProgramResult unknown = Launch(
      "",
      frozen + Programs({{"sinfo", "echo 'batch*|infinite|64'"}, {"squeue", "exit 0"}, {"sbatch", "sleep 100000"}}));
  EXPECT_EQ(unknown.status, kExitUsage);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("sbatch has not answered within 1 s"), HasSubstr("squeue --me")));
  EXPECT_TRUE(fs::exists(run_ + "/job/launch.json")) << "there may be a job, which needs its files";
}

TEST_F(Job, ALaunchThatSbatchRefusesLeavesNothingBehind) {
  const std::string path = Programs(
      {{"sinfo", "echo 'batch*|infinite|64'"}, {"squeue", "exit 0"}, {"sbatch", "echo 'Invalid account' >&2; exit 1"}});
  for (const bool there : {false, true}) {
    if (there) fs::create_directory(run_);
    const ProgramResult refused = Launch("", path);
    EXPECT_EQ(refused.status, kExitUsage);
    EXPECT_THAT(refused.err, HasSubstr("Invalid account"));
    EXPECT_EQ(fs::exists(run_), there);
    EXPECT_FALSE(fs::exists(run_ + "/job"));
  }
}

TEST_F(Job, ARunDirectoryThatCannotBeMadeIsTold) {
  std::ofstream(folder_ + "/file") << "x";
  run_ = folder_ + "/file/run";
  ExpectRefused("", "the run directory " + run_ + " cannot be written: " + folder_ + "/file is no folder");
  const ProgramResult shown = DryRun("--json");
  for (const json& file : json::parse(shown.out)["files"]) EXPECT_EQ(file["here"], file["path"] != run_) << file;
  if (geteuid() == 0) return;  // who may write everywhere
  fs::create_directory(folder_ + "/closed");
  fs::permissions(folder_ + "/closed", fs::perms::owner_read | fs::perms::owner_exec);
  run_ = folder_ + "/closed/run";
  ExpectRefused("", folder_ + "/closed: Permission denied");
}

TEST_F(Job, AnInterfaceThatThisMachineLacksIsAWarning) {
  const ProgramResult shown = DryRun("launch.interface=ib77");
  EXPECT_EQ(shown.status, 0) << shown.err;
  EXPECT_THAT(shown.err,
              HasSubstr("warning: launch.interface: there is no network interface 'ib77'; this machine has"));
}

TEST_F(Job, TheStatusOfARunThatHasNotBegunIsThatOfItsJob) {
  Submitted();
  const auto with = [&](const std::string& scontrol, const std::string& sacct = "exit 1") {
    return Programs({{"scontrol", scontrol}, {"sacct", sacct}, {"squeue", "exit 0"}});
  };
  const ProgramResult waits = Status(with("echo JobId=7 JobState=PENDING Reason=Priority ExitCode=0:0"));
  EXPECT_EQ(waits.status, 0) << waits.err;
  EXPECT_EQ(waits.out, run_ + " was submitted to Slurm and has not begun: job 7 is PENDING (Priority)\n");
  const std::string failed = with("echo JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=127:0");
  for (const char* words : {"", "--follow"}) {
    const ProgramResult over = Status(failed, words);
    EXPECT_EQ(over.status, 127) << over.err;
    EXPECT_EQ(over.out, run_ +
                            " was submitted to Slurm and has not begun: job 7 is FAILED (NonZeroExitCode), exit status "
                            "127\nlast lines of " +
                            run_ + "/job/slurm-7.log:\n  exec: /moved/plan: not found\n");
  }
  const ProgramResult data = Status(failed, "--json"), stream = Status(failed, "--json --follow");
  EXPECT_EQ(json::parse(data.out)["state"], "not begun");
  EXPECT_EQ(json::parse(data.out)["job"]["exit_status"], 127);
  const json last = json::parse(stream.out.substr(stream.out.find('\n') + 1));
  EXPECT_EQ(last["event"], "outcome");
  EXPECT_EQ(last["state"], "not begun");
  EXPECT_EQ(last["exit_status"], 127);
  EXPECT_EQ(stream.status, 127);
  // The controller forgets jobs; the accounting, if there is one, does not.
  const std::string forgets = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1";
  const ProgramResult accounted = Status(with(forgets, "echo 'CANCELLED by 1000|0:0'"));
  EXPECT_EQ(accounted.status, kExitPeerLost);
  EXPECT_THAT(accounted.out, HasSubstr("job 7 is CANCELLED\n"));
  EXPECT_THAT(Status(with(forgets)).out, HasSubstr("job 7 is over, and Slurm says no more of it\n"));
  const std::string unreachable = with("echo 'Unable to contact slurm controller' >&2; exit 1");
  EXPECT_EQ(Status(unreachable).status, 0) << "nobody knows";
  // Its head has told.
  std::ofstream(run_ + "/job/outcome.json") << R"({"exit_code": 10, "cause": "of 4 nodes these came: none"})";
  const ProgramResult told = Status(unreachable, "--follow");
  EXPECT_EQ(told.status, kExitPeerLost);
  EXPECT_THAT(told.out, HasSubstr("\nof 4 nodes these came: none\n"));
}

TEST_F(Job, TheStatusOfARunWhoseJobWaitsAgainIsThatItGoesOn) {
  Submitted();
  std::ofstream(run_ + "/plan.json") << "{}";
  std::ofstream(run_ + "/outcome.json") << R"({"exit_code": 23, "cause": "the node of rank 1 is lost"})";
  const std::string again = Programs({{"scontrol", "echo JobId=7 JobState=PENDING Reason=BeginTime ExitCode=0:0"}});
  const ProgramResult waits = Status(again), data = Status(again, "--json");
  EXPECT_EQ(waits.status, 0) << waits.out;
  EXPECT_THAT(waits.out,
              HasSubstr("ended with exit status 23: the node of rank 1 is lost; job 7 waits in the queue, and "
                        "goes on with it: PENDING (BeginTime)"));
  EXPECT_EQ(json::parse(data.out)["state"], "waits");
  EXPECT_EQ(json::parse(data.out)["job"]["reason"], "BeginTime");
  std::ofstream(run_ + "/job/outcome.json") << R"({"exit_code": 2, "cause": "there is no network interface 'ib9'"})";
  const ProgramResult over = Status(Programs(
      {{"scontrol", "echo JobId=7 JobState=FAILED Reason=NonZeroExitCode ExitCode=2:0"}, {"squeue", "exit 0"}}));
  EXPECT_EQ(over.status, 2) << over.out;
  EXPECT_THAT(over.out, HasSubstr("job 7 ended before its life began: there is no"));
}

// A job on this machine: Slurm's programs are those of the test, and the head is the real one.
class JobHere : public Job {
 protected:
  // `srun`: lines of a shell, in which `agent` starts the agent. Submits the job; its head ends with the status that
  // the result has. `while_it_runs`: lines of a shell beside it, in which $head is its process.
  ProgramResult RunJob(const std::string& srun, const std::string& rank, const std::string& while_it_runs) {
    const std::string recipe = InSource("recipes/llama_tiny.yaml");
    const std::string path = Programs({{"sinfo", "echo 'batch*|infinite|64'"},
                                       {"squeue", "exit 0"},
                                       {"sacct", "exit 0"},
                                       {"sbatch", "[ \"$1\" = --test-only ] || echo 7"},
                                       {"scontrol", "echo \"$@\" >>" + folder_ + "/scontrol"},
                                       {"srun",
                                        "[ \"$1\" = --help ] && exit\n"
                                        "while [ \"$1\" != \"${1#-}\" ]; do shift; done\n"
                                        "words=$*\n"
                                        "agent() { SLURM_NODEID=0 $words; }\n" +
                                            srun}});
    const ProgramResult submitted =
        Shell(path + " " + InBuild("bin/plan") + " launch " + recipe + " checkpoint.every_steps=5 --executor " +
              executor_ + " --run-dir " + run_ + " --slurm");
    EXPECT_EQ(submitted.status, 0) << submitted.err;
    return Shell("{ " + path + "; export SLURM_JOB_ID=7 SLURM_JOB_NUM_NODES=1 SLURM_JOB_NODELIST=here FAKE_RANK_0='" +
                 rank + "'; " + InBuild("bin/plan") + " job " + run_ + " & head=$!; " + while_it_runs +
                 "wait $head; }");
  }
  // Lines of a shell that wait until the file has contents.
  static std::string Await(const std::string& file) { return "while [ ! -s " + file + " ]; do sleep 0.05; done; "; }
};

// The job's time is over, its ranks have saved, and Slurm's SIGTERM comes while the step of the agents ends.
TEST_F(JobHere, ASignalBehindTheCheckpointDoesNotKeepAJobOutOfTheQueue) {
  const std::string pid = folder_ + "/pid";
  const ProgramResult ended =
      RunJob("agent\nkill -TERM $PPID", "on_usr1=75 unblock pid=" + pid + " sleep", Await(pid) + "kill -USR1 $head; ");
  EXPECT_EQ(ended.status, kExitPreempted) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("job 7 waits in the queue again"));
  EXPECT_THAT(Read("scontrol"), HasSubstr("requeue 7\n"));
}

// The rank waits for srun, which has more to say than a pipe holds.
TEST_F(JobHere, WhatSrunSaysIsReadWhileTheRunGoesOn) {
  const std::string pid = folder_ + "/pid", said = folder_ + "/said";
  const ProgramResult ended =
      RunJob("agent &\n" + Await(pid) + "\nyes 'srun: warning: a node is slow' | head -n 10000 >&2\necho all >" + said +
                 "\nwait",
             "pid=" + pid + " await=" + said, "");
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_TRUE(fs::exists(said)) << "srun was held up until its run had ended";
  EXPECT_GE(std::count(ended.err.begin(), ended.err.end(), '\n'), 10000);
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
