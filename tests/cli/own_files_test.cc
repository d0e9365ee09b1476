// What commands may write over: their own files, and nothing else. And what they leave where a file may not grow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "planner/base/files/exit_status.h"
#include "tests/cli/plan_program.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class OwnFiles : public PlanProgram {
 protected:
  const std::string recipe_ = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

  // Runs a command that is to write `file`, in the test's folder, where another file is.
  void ExpectKept(const std::string& command, const std::string& file, const std::string& why) {
    SCOPED_TRACE(command);
    for (const std::string text :
         {"extends: [a.yaml]\n", "{\"format_version\": 2, \"name\": 3}\n", "\x89PNG\r\n\x1a\nx"}) {
      std::filesystem::create_directories(std::filesystem::path(folder_ + "/" + file).parent_path());
      Write(file, text);
      const ProgramResult refused = Plan(command);
      EXPECT_EQ(refused.status, kExitUsage) << refused.out << refused.err;
      EXPECT_THAT(refused.err, AllOf(HasSubstr(file), HasSubstr(why)));
      EXPECT_EQ(Read(file), text);
    }
    Write(file, "");
    std::filesystem::remove(folder_ + "/" + file);
  }
};

TEST_F(OwnFiles, OtherFilesAreNeverReplaced) {
  ExpectKept("compile " + recipe_ + " -o " + folder_ + "/other.yaml", "other.yaml", "is there and is no plan");
  ExpectKept("measure " + recipe_ + " -o " + folder_ + "/p.json", "p.json", "is there and is no profile");
  ExpectKept("show " + recipe_ + " --html " + folder_ + "/p.html", "p.html", "is there and is no page");
  ExpectKept("help --man " + folder_ + "/man", "man/plan-launch.1", "is there and is no man page");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/man/plan.1")) << "a page was written before all were looked at";
}

// Before minutes go into the parts of a profile.
TEST_F(OwnFiles, OfAMeasurementCanBeWritten) {
  std::filesystem::create_directories(folder_ + "/hf");
  const ProgramResult refused = Plan("measure " + recipe_ + " -o " + folder_ + "/hf");
  EXPECT_EQ(refused.status, kExitUsage) << refused.err;
  EXPECT_EQ(refused.err, "error: " + folder_ + "/hf is a folder: -o names the file of the profile\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/hf.parts"));
}

TEST_F(OwnFiles, AreWrittenAgain) {
  const std::string file = folder_ + "/p.json", copy = Write("r.yaml", "extends: [" + recipe_ + "]\nname: r\n");
  EXPECT_EQ(Plan("compile " + copy + " -o " + copy).status, kExitUsage);
  EXPECT_THAT(Read("r.yaml"), HasSubstr("name: r"));
  Write("p.json", "");
  for (const std::string overrides : {"", " data.seed=8"}) {
    const ProgramResult written = Plan("compile " + recipe_ + overrides + " -o " + file);
    EXPECT_EQ(written.status, kExitSuccess) << written.err;
  }
  EXPECT_THAT(Read("p.json"), HasSubstr("\"seed\": 8"));
  // A plan of another version, and one that a program has laid out anew.
  for (const std::string head : {"{\n \"format_version\": 1,\n \"tool_version\": \"0.0\"}",
                                 "{\"format_version\":2,\"tool_version\":\"0.1.0\",\"name\":\"x\"}"}) {
    Write("p.json", head);
    EXPECT_EQ(Plan("compile " + recipe_ + " -o " + file).status, kExitSuccess) << head;
  }
  EXPECT_EQ(Plan("compile " + recipe_ + " -o /dev/null").status, kExitSuccess);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Plan("help --man " + folder_ + "/man").status, kExitSuccess);
}

// A run directory that a person has made of a folder with files of their own.
TEST_F(OwnFiles, OfNoRunAreNotTouchedByALaunch) {
  const std::string launch = "launch " + recipe_ + " --executor " + InBuild("bin/fake_rank");
  const std::string local = launch + " --local --run-dir " + folder_ + "/mine";
  for (const std::string more : {"", " checkpoint.every_steps=2"}) {
    for (const std::string name : {"metrics.jsonl", "outcome.json", "lock", "logs/rank0000.log", "logs/launch.log",
                                   "recorder/rank0000", "tensorboard/events.out.tfevents.1.a", "trace.json.gz"}) {
      SCOPED_TRACE(name + more);
      const std::string file = folder_ + "/mine/" + name;
      std::filesystem::create_directories(std::filesystem::path(file).parent_path());
      Write("mine/" + name, "mine\n");
      const ProgramResult refused = Plan(local + more);
      EXPECT_EQ(refused.status, kExitUsage) << refused.err;
      EXPECT_THAT(refused.err, HasSubstr(file + " is in the way"));
      EXPECT_EQ(Read("mine/" + name), "mine\n");
      EXPECT_EQ(std::distance(std::filesystem::recursive_directory_iterator(folder_ + "/mine"), {}),
                name.find('/') == std::string::npos ? 1 : 2);
      std::filesystem::remove_all(folder_ + "/mine");
    }
  }
  std::filesystem::create_directories(folder_ + "/mine/job");
  Write("mine/job/plan.json", "mine\n");
  EXPECT_THAT(Plan(launch + " --slurm --run-dir " + folder_ + "/mine").err, HasSubstr("/mine/job is in the way"));
  std::filesystem::remove_all(folder_ + "/mine");
  // The folder of a probe.
  std::filesystem::create_directories(folder_ + "/probe");
  Write("probe/gradients_last.safetensors", "mine\n");
  const ProgramResult refused = Plan(local + " --probe " + folder_ + "/probe");
  EXPECT_EQ(refused.status, kExitUsage) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("/probe/gradients_last.safetensors is in the way"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/mine"));
}

// Weights or shards: with the files of a run among them they would count as a run from then on.
TEST_F(OwnFiles, OfAnotherFolderHaveNoRunAmongThem) {
  std::filesystem::create_directories(folder_ + "/hf");
  Write("hf/config.json", "{}");
  Write("hf/model.safetensors", "mine\n");
  const std::string launch = "launch " + recipe_ + " --yes --executor " + InBuild("bin/fake_rank") + " --run-dir ";
  for (const std::string more : {" --local", " --local checkpoint.every_steps=2", " --slurm", " --slurm --dry-run"}) {
    SCOPED_TRACE(more);
    const ProgramResult refused = Plan(launch + folder_ + "/hf" + more);
    EXPECT_EQ(refused.status, kExitUsage) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("/hf is no run directory, and it is not empty: it has config.json, "
                                       "model.safetensors; a run begins in a new or an empty folder"));
    EXPECT_EQ(std::distance(std::filesystem::recursive_directory_iterator(folder_ + "/hf"), {}), 2);
  }
  std::filesystem::create_symlink("nowhere", folder_ + "/link");
  EXPECT_THAT(Plan(launch + folder_ + "/link --local").err, HasSubstr("/link is a link to nowhere"));
  // Into a file of the folder goes what the launch says, warnings before all else.
  std::filesystem::create_directories(folder_ + "/mine");
  const ProgramResult ran =
      Shell(InBuild("bin/plan") + " " + launch + folder_ + "/mine --local > " + folder_ + "/mine/output.txt 2>&1");
  EXPECT_EQ(ran.status, kExitSuccess) << Read("mine/output.txt");
}

// Files that no run writes, folders that are empty, and a lock that a launch left that ended at once.
TEST_F(OwnFiles, OfNoRunThatAreNotInTheWayStay) {
  std::filesystem::create_directories(folder_ + "/mine/logs");
  std::filesystem::create_directories(folder_ + "/mine/job");
  for (const char* name : {"notes.txt", "r.yaml", "logs/slurm-7.out"}) Write(std::string("mine/") + name, "mine\n");
  Write("mine/lock", "process 7 on node");
  Write("mine/job/head.json", "{}");
  const std::string launch = "launch " + recipe_ + " --local --yes --executor " + InBuild("bin/fake_rank");
  const ProgramResult ran = Plan(launch + " --run-dir " + folder_ + "/mine");
  EXPECT_EQ(ran.status, kExitSuccess) << ran.err;
  for (const char* name : {"notes.txt", "r.yaml", "logs/slurm-7.out"})
    EXPECT_EQ(Read(std::string("mine/") + name), "mine\n");
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/mine/run.json"));
}

// `ulimit -f`: as a full disk, with a message, and without what was being written.
TEST_F(OwnFiles, ThatMayNotGrowAreAnErrorOfTheWrite) {
  const auto limited = [&](const std::string& command) {
    return Shell("(ulimit -f 1; " + InBuild("bin/plan") + " " + command + ")");
  };
  for (const std::string command : {"compile " + recipe_ + " -o " + folder_ + "/w/p.json",
                                    "show " + recipe_ + " --html " + folder_ + "/w/p.html"}) {
    SCOPED_TRACE(command);
    std::filesystem::create_directories(folder_ + "/w");
    const ProgramResult ended = limited(command);
    EXPECT_EQ(ended.status, kExitUsage) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("File too large"));
    EXPECT_TRUE(std::filesystem::is_empty(folder_ + "/w"));
  }
  const std::string data = recipe_ +
                           " batch.sequence_length=192 'data={kind: sources, seed: 3, sources: [{kind: webdataset, "
                           "shards: [" +
                           InSource("tests/golden/data_fixtures/webdataset/*.tar") +
                           "]}], max_patches: 64, index: " + folder_ + "/index}'";
  const ProgramResult index = limited("data index " + data + " models.hybrid_moe_tiny.vocabulary=260");
  EXPECT_EQ(index.status, kExitStorage) << index.err;
  EXPECT_THAT(index.err, HasSubstr("File too large"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_ + "/index"))
    EXPECT_EQ(entry.path().string().find(".writing."), std::string::npos) << entry.path();
}

// A pipe in the place of a file that `plan` keeps: nobody waits for somebody who reads it.
TEST_F(OwnFiles, AreNoPipes) {
  const std::string data =
      InSource("recipes/nemotron_moe_lm_tiny.yaml") +
      " models.hybrid_moe_tiny.vocabulary=65536 batch.sequence_length=256" +
      " 'data={kind: sources, tokenizer: ids, pad_token: 1, end_token: 2, sources: [{name: t, kind: "
      "tokens, path: " +
      InSource("tests/golden/data_fixtures/megatron/uint16_text_document") + "}], index: " + folder_ + "/index}'";
  const ProgramResult made = Plan("data index " + data);
  ASSERT_EQ(made.status, kExitSuccess) << made.err;
  std::string index;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/index")) {
    if (entry.path().extension() == ".index") index = entry.path();
  }
  ASSERT_FALSE(index.empty());
  std::filesystem::remove(index);
  ASSERT_EQ(mkfifo(index.c_str(), 0600), 0);
  const ProgramResult refused = Shell("timeout 20 " + InBuild("bin/plan") + " data index " + data);
  EXPECT_EQ(refused.status, kExitUsage) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr(index + ": it is not a plain file"));
}

}  // namespace
}  // namespace planwright::testing
