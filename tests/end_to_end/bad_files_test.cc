// Something else in the place of a file that a launch or a rank reads: a pipe that nobody writes, a device that never
// ends, a folder, a file that was cut off, weights that are no numbers. Each ends the run with the path and the right
// exit status; none makes it wait.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "planner/base/files/exit_status.h"
#include "planner/wire/records/safetensors.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BadFiles : public CheckpointRun {
 protected:
  // What is put in the place of a file: the name of a kind, and what a message says of it.
  struct Kind {
    const char* name;
    const char* why;
  };
  static constexpr Kind kKinds[] = {
      {"pipe", "it is not a plain file"}, {"endless", "it is not a plain file"}, {"folder", "Is a directory"}};

  void Put(const Kind& kind, const std::string& path) const {
    fs::remove_all(path);
    const std::string name = kind.name;
    if (name == "pipe") {
      ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    }
    if (name == "endless") fs::create_symlink("/dev/zero", path);
    if (name == "folder") fs::create_directories(path);
  }
  void ExpectRefused(const std::vector<std::string>& words, int status, const std::string& path,
                     const std::string& why) {
    const Ended ended = Run(1, words);
    EXPECT_EQ(ended.status, status) << ended.output;
    EXPECT_THAT(ended.output, AllOf(HasSubstr(path), HasSubstr(why), Not(HasSubstr("step 1/"))));
    EXPECT_TRUE(ProcessesWith(RunDir()).empty());
    fs::remove_all(RunDir());
  }
  // The weights of a run of one step, as `initialize.from` takes them.
  std::string Weights() {
    const Ended ended = Run(1, {"--probe", Folder() + "/probe"});
    EXPECT_EQ(ended.status, 0) << ended.output;
    fs::remove_all(RunDir());
    return Folder() + "/probe/parameters_last.safetensors";
  }
};

TEST_F(BadFiles, OfWeights) {
  const std::string path = Weights(), from = "initialize.from=" + path, whole = ReadAll(path);
  ASSERT_EQ(Run(1, {from}).status, 0);
  fs::remove_all(RunDir());
  fs::resize_file(path, whole.size() - 1);
  ExpectRefused({from}, kExitUsage, path, "the tensors end at ");
  fs::resize_file(path, 100);
  ExpectRefused({from}, kExitUsage, path, "the header is longer than the file");
  for (const double value : {std::nan(""), double{INFINITY}}) {
    std::ofstream(path, std::ios::binary) << whole;
    const auto file = SafetensorsFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto& [name, stored] = *file->tensors().begin();
    ASSERT_TRUE(stored.dtype == DType::kFp32 && stored.bytes >= 24) << name;
    const float number = static_cast<float>(value);
    char bytes[sizeof number];
    std::memcpy(bytes, &number, sizeof number);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(stored.offset + 5 * 4).write(bytes, 4);
    ExpectRefused({from}, kExitUsage, path + ": tensor " + name, "element 5 is infinite or no number (NaN)");
  }
  for (const Kind& kind : kKinds) {
    Put(kind, path);
    const bool folder = kind.name == std::string("folder");
    ExpectRefused({from}, kExitUsage, path, folder ? "it is no checkpoint, as it has no manifest.json" : kind.why);
  }
}

TEST_F(BadFiles, OfSamples) {
  const std::string path = Folder() + "/samples";
  const std::string recorded = "data={kind: recorded, image_token: 255, path: " + path + "}";
  const std::vector<std::string> shards = {"models.hybrid_moe_tiny.vocabulary=260",
                                           "data={kind: sources, seed: 1, sources: [{kind: webdataset, shards: " +
                                               path + "}], max_patches: 16, index: " + Folder() + "/index}"};
  for (const Kind& kind : kKinds) {
    Put(kind, path);
    ExpectRefused({recorded}, kExitUsage, path, kind.why);
    ExpectRefused(shards, kExitInvalid, path, "is no tar file");
  }
  fs::remove_all(path);
  ExpectRefused(shards, kExitInvalid, path, "there is no file");
  std::ofstream(path) << std::string(700, 'x');
  ExpectRefused(shards, kExitInvalid, path, "is no tar file");
  ExpectRefused({recorded}, kExitUsage, path, "it is no safetensors file");
}

TEST_F(BadFiles, OfChoices) {
  const std::string choices = Folder() + "/choices";
  ASSERT_EQ(Run(1, {"--record-routing", choices}).status, 0);
  fs::remove_all(RunDir());
  for (const std::string& path : {choices + "/language.layers.1.i16", choices + "/routing.json"}) {
    for (const Kind& kind : kKinds) {
      Put(kind, path);
      ExpectRefused({"--replay-routing", choices}, kExitUsage, path, "");
    }
  }
}

TEST_F(BadFiles, OfTheRunSoFar) {
  ASSERT_EQ(Run(4).status, 0);
  const std::string newest = Checkpoints() + "/step-00000004.life-1", kept = Folder() + "/kept";
  for (const char* name : {"manifest.json", "rank-00000.json", "rank-00001.safetensors", "plan.json"}) {
    const std::string path = newest + "/" + name;
    for (const Kind& kind : kKinds) {
      fs::rename(path, kept);
      Put(kind, path);
      const Ended ended = Plan({"checkpoint", "ls", RunDir()});
      EXPECT_EQ(ended.status, 0) << ended.output;
      EXPECT_THAT(ended.output, HasSubstr("damaged")) << path << kind.name;
      fs::remove_all(path);
      fs::rename(kept, path);
    }
  }
  Put(kKinds[0], newest + "/rank-00000.json");
  const Ended ended = Run(4);
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("resuming after step 2"));
  for (const Kind& kind : kKinds) {
    Put(kind, RunDir() + "/plan.json");
    const Ended refused = Run(6);
    EXPECT_EQ(refused.status, kExitUsage) << refused.output;
    EXPECT_THAT(refused.output, HasSubstr("cannot read " + RunDir() + "/plan.json: " + kind.why));
  }
}

TEST_F(BadFiles, OfMetrics) {
  for (const Kind& kind : kKinds) {
    fs::create_directories(RunDir());
    Put(kind, RunDir() + "/metrics.jsonl");
    ExpectRefused({}, kExitStorage, "cannot write " + RunDir() + "/metrics.jsonl: ", "");
  }
}

// Links in a run directory to a file outside of it. A file that a run cannot do without ends it; no log is worth a run.
class Links : public BadFiles {
 protected:
  void SetUp() override {
    BadFiles::SetUp();
    std::ofstream(outside_ = Folder() + "/outside") << "precious";
    Prepare();
  }
  void Prepare() {
    for (const char* folder : {"logs", "recorder", "tensorboard", "trace"})
      fs::create_directories(RunDir() + "/" + folder);
  }
  void Link(const std::string& name) { fs::create_symlink(outside_, RunDir() + "/" + name); }
  void ExpectUntouched() { EXPECT_EQ(ReadAll(outside_), "precious"); }

  std::string outside_;
};

TEST_F(Links, ToAFileThatTheRunNeeds) {
  char host[256] = {};
  ASSERT_EQ(gethostname(host, sizeof host - 1), 0);
  const std::string events = std::string("tensorboard/events.out.tfevents.0000000001.") + host;
  for (const auto& [name, status] : {std::pair<std::string, int>{"lock", kExitUsage},
                                     {"logs/rank0001.out", kExitUsage},
                                     {"metrics.jsonl", kExitStorage},
                                     {events, kExitStorage}}) {
    Link(name);
    ExpectRefused({}, status, "cannot write " + RunDir() + "/" + name, "it is a symbolic link");
    ExpectUntouched();
    Prepare();
  }
}

TEST_F(Links, ToALogOrARecord) {
  for (const char* name : {"logs/rank0000.log", "logs/launch.log", "recorder/rank0000", "trace/rank0000.json",
                           "trace.json.gz", "trace.json.gz.writing"})
    Link(name);
  const Ended ended = Run(2, {"--trace", "1"});
  EXPECT_THAT(ended.output, HasSubstr("rank0000.log (it is a symbolic link)"));
  EXPECT_THAT(ended.output, HasSubstr("cannot write " + RunDir() + "/trace/rank0000.json: it is a symbolic link"));
  EXPECT_EQ(ended.status, kExitStorage) << ended.output;
  ExpectUntouched();
}

TEST_F(Links, ToTheOutcomeAndToTheTrace) {
  for (const char* name : {"outcome.json", "trace.json.gz.writing"}) Link(name);
  const Ended ended = Run(2, {"--trace", "1"});
  EXPECT_EQ(ended.status, kExitStorage) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("cannot write " + RunDir() + "/trace.json.gz: it is a symbolic link"));
  EXPECT_THAT(ended.output, HasSubstr("cannot write " + RunDir() + "/outcome.json: it is a symbolic link"));
  ExpectUntouched();
}

TEST_F(Links, ToThePlanOfALaterLife) {
  ASSERT_EQ(Run(2).status, 0);
  const std::string plan = ReadAll(RunDir() + "/plan.json") + "\n";
  std::ofstream(outside_) << plan;
  fs::remove(RunDir() + "/plan.json");
  Link("plan.json");
  const Ended ended = Run(4);
  EXPECT_EQ(ended.status, kExitUsage) << ended.output;
  EXPECT_THAT(ended.output, HasSubstr("cannot write " + RunDir() + "/plan.json: it is a symbolic link"));
  EXPECT_EQ(ReadAll(outside_), plan);
}

// A run directory, or a folder in it, may be on another disk.
TEST_F(Links, ToFoldersAreFollowed) {
  fs::remove_all(RunDir());
  fs::create_directories(Folder() + "/disk/run");
  fs::create_directories(Folder() + "/other");
  fs::create_symlink(Folder() + "/disk/run", RunDir());
  fs::create_symlink(Folder() + "/other", RunDir() + "/checkpoints");
  EXPECT_EQ(Run(2).status, 0);
  EXPECT_TRUE(fs::exists(Folder() + "/disk/run/metrics.jsonl"));
  EXPECT_TRUE(fs::exists(Folder() + "/other/step-00000002.life-1"));
}

TEST_F(BadFiles, InPlaceOfTheFolderForTensorBoard) {
  for (const Kind& kind : {kKinds[0], kKinds[1]}) {
    fs::create_directories(RunDir());
    Put(kind, RunDir() + "/tensorboard");
    ExpectRefused({}, kExitStorage, RunDir() + "/tensorboard", "");
  }
}

// The executor by itself, as a launcher of somebody else would start it.
TEST_F(BadFiles, OfThePlanOfARank) {
  const std::string path = Folder() + "/plan.json";
  for (const Kind& kind : kKinds) {
    Put(kind, path);
    const Ended ended = End(StartProgram({InBuild("bin/executor"), "--plan", path, "--run-dir", RunDir()}, {},
                                         Folder() + "/output_" + kind.name));
    EXPECT_EQ(ended.status, kExitUsage) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr("executor: cannot read " + path + ": " + kind.why));
  }
}

TEST_F(BadFiles, TimeOut) {
  for (const char* value : {"inf", "nan", "1e400", "0", "-5", "10 ", ""}) {
    const std::string variable = std::string("PLANWRIGHT_TIMEOUT_SECONDS=") + value;
    const Ended ended =
        End(StartProgram({InBuild("bin/plan"), "launch", Recipe(), "--local", "--yes", "--run-dir", RunDir()},
                         {variable}, Folder() + "/output_of_time_out"));
    EXPECT_EQ(ended.status, kExitUsage) << ended.output;
    EXPECT_THAT(ended.output, HasSubstr(std::string("PLANWRIGHT_TIMEOUT_SECONDS='") + value +
                                        "' is not a number of seconds from 0.001 to 1e9"));
    EXPECT_FALSE(fs::exists(RunDir()));
  }
}

}  // namespace
}  // namespace planwright::testing
