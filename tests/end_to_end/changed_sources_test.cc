// A run goes on with other sources (docs/training/data.md#changing-sources): only if that is accepted, from the sample
// on that the messages name, and before it with the numbers of the run that did not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "planner/base/files/exit_status.h"
#include "tests/data/samples/shard_files.h"
#include "tests/end_to_end/checkpoint_run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ChangedSources : public CheckpointRun {
 protected:
  // The words for a mixture of two sources of text and images, with these weights.
  std::vector<std::string> Weights(const std::string& a, const std::string& b) const {
    const std::string shards = InSource("tests/golden/data_fixtures/webdataset/shard-00000");
    return {"models.hybrid_moe_tiny.vocabulary=260", "batch.sequence_length=96",
            "data={kind: sources, max_patches: 64, index: " + Folder() +
                "/index, sources: [{name: a, kind: webdataset, shards: " + shards + "0.tar, weight: " + a +
                "}, {name: b, kind: webdataset, shards: " + shards + "1.tar, weight: " + b + "}]}"};
  }
  // The words for one source, whose shard can be replaced.
  std::vector<std::string> OneShard() const {
    return {"models.hybrid_moe_tiny.vocabulary=260", "batch.sequence_length=96",
            "data={kind: sources, max_patches: 64, index: " + Folder() +
                "/index, sources: [{name: a, kind: webdataset, shards: " + Folder() + "/a.tar}]}"};
  }
  void PutShard(const std::string& number) const {
    fs::copy_file(InSource("tests/golden/data_fixtures/webdataset/shard-00000" + number + ".tar"), Folder() + "/a.tar",
                  fs::copy_options::overwrite_existing);
  }
  Ended Diff(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"diff",
                                    RunDir(),
                                    Recipe(),
                                    "modules.language.placement.first_rank=1",
                                    "batch.micro_samples=2",
                                    "budget.train_samples=320",
                                    "budget.learning_rate.decay_samples=320",
                                    "checkpoint.every_steps=2"};
    all.insert(all.end(), words.begin(), words.end());
    return Plan(all);
  }
  std::vector<std::string> Accepted(std::vector<std::string> words) const {
    words.push_back("--accept-changes");
    return words;
  }
};

// Of 13 to 12 the samples are in turns, as of 1 to 1, up to sample 24. Sample 25 is of step 4.
TEST_F(ChangedSources, AreAcceptedAndBeginAtTheSampleThatIsNamed) {
  const std::vector<std::string> even = Weights("1", "1"), odd = Weights("13", "12");
  const Ended begun = Run(2, even);
  ASSERT_EQ(begun.status, 0) << begun.output;
  fs::copy(RunDir(), Folder() + "/kept", fs::copy_options::recursive);
  const Ended unchanged = Run(5, even);
  ASSERT_EQ(unchanged.status, 0) << unchanged.output;
  const std::vector<std::string> curve = Curve();
  ASSERT_EQ(curve.size(), 5U);
  fs::remove_all(RunDir());
  fs::rename(Folder() + "/kept", RunDir());

  const Ended refused = Run(5, odd);
  EXPECT_EQ(refused.status, kExitUsage) << refused.output;
  EXPECT_THAT(refused.output,
              AllOf(HasSubstr("data.sources.a.weight"), HasSubstr("data.sources.b.weight"),
                    HasSubstr("samples are other ones from sample 25 on\n"), HasSubstr("would change the loss curve"),
                    HasSubstr("--accept-changes"), Not(HasSubstr("step 3/"))));
  EXPECT_FALSE(fs::exists(RunDir() + "/lives/2")) << "a refused launch is no life";

  const Ended accepted = Run(5, Accepted(odd));
  EXPECT_EQ(accepted.status, 0) << accepted.output;
  EXPECT_THAT(accepted.output,
              AllOf(HasSubstr("samples are other ones from sample 25 on\n"), HasSubstr("resuming after step 2 ")));
  const std::vector<std::string> changed = Curve();
  ASSERT_EQ(changed.size(), 5U);
  for (size_t step = 0; step < 3; ++step) EXPECT_EQ(changed[step], curve[step]) << step + 1;
  EXPECT_NE(changed[3], curve[3]);
  // The new sources are those of the run now.
  const Ended again = Run(6, odd);
  EXPECT_EQ(again.status, 0) << again.output;
}

TEST_F(ChangedSources, DiffWithTheRunSaysFromWhichSampleThatIsLeft) {
  ASSERT_EQ(Run(2, Weights("1", "1")).status, 0);
  const Ended same = Diff(Weights("2", "2"));
  EXPECT_EQ(same.status, 0) << same.output;
  EXPECT_THAT(same.output, HasSubstr("samples        as before\n"));
  const Ended later = Diff(Weights("13", "12"));
  EXPECT_EQ(later.status, 1);
  EXPECT_THAT(later.output, AllOf(HasSubstr("begins         after step 2 of 40, from sample 16 on\n"),
                                  HasSubstr("samples        other ones from sample 25 on\n"),
                                  HasSubstr("a launch asks for --accept-changes\n")));
  // Another order of equal weights: other ones from the first one that is left.
  std::vector<std::string> turned = Weights("1", "1");
  const std::string first = "{name: a", second = "{name: b";
  const size_t at = turned.back().find(first), next = turned.back().find(second), end = turned.back().find("]}");
  turned.back() = turned.back().substr(0, at) + turned.back().substr(next, end - next) + ", " +
                  turned.back().substr(at, next - at - 2) + "]}";
  EXPECT_THAT(Diff(turned).output, AllOf(HasSubstr("samples        other ones from sample 16 on\n"),
                                         HasSubstr("a launch asks for --accept-changes\n")));
  // Samples differ from sample 5 on; what is past does not count.
  EXPECT_THAT(Diff(Weights("3", "2")).output, HasSubstr("samples        other ones from sample 16 on\n"));
}

// The plan is the same, and the documents are not.
TEST_F(ChangedSources, OtherDocumentsInTheSameFilesAreAcceptedToo) {
  PutShard("0");
  ASSERT_EQ(Run(2, OneShard()).status, 0);
  const Ended same = Diff(OneShard());
  EXPECT_EQ(same.status, 0) << same.output;
  EXPECT_THAT(same.output, Not(HasSubstr("files ")));
  // Another time of change is no other document.
  fs::last_write_time(Folder() + "/a.tar", fs::last_write_time(Folder() + "/a.tar") + std::chrono::hours(1));
  EXPECT_THAT(Diff(OneShard()).output, HasSubstr("files          not compared: there is no index, or it is older"));
  const Ended touched = Run(4, OneShard());
  ASSERT_EQ(touched.status, 0) << touched.output;

  PutShard("1");
  const Ended refused = Run(6, OneShard());
  EXPECT_EQ(refused.status, kExitUsage) << refused.output;
  EXPECT_THAT(refused.output, AllOf(HasSubstr("the files of source a have other documents than the run was trained on"),
                                    HasSubstr("samples are other ones from sample 32 on\n"),
                                    HasSubstr("--accept-changes"), Not(HasSubstr("step 5/"))));
  EXPECT_FALSE(fs::exists(RunDir() + "/lives/3")) << "a refused launch is no life";
  const Ended other = Diff(OneShard());
  EXPECT_EQ(other.status, 1) << other.output;
  EXPECT_THAT(other.output, AllOf(HasSubstr("samples        other ones from sample 32 on\n"),
                                  HasSubstr("files          other documents than the run was trained on, of a\n"),
                                  HasSubstr("may change: a launch asks for --accept-changes\n")));

  const Ended accepted = Run(6, Accepted(OneShard()));
  EXPECT_EQ(accepted.status, 0) << accepted.output;
  // The new documents are those of the run now.
  const Ended again = Run(7, OneShard());
  EXPECT_EQ(again.status, 0) << again.output;
}

// A shard that is made anew, and has the size and the time that it had: before a rank starts, if the index finds it;
// else before anything is trained on it.
TEST_F(ChangedSources, OtherDocumentsOfTheSameSizeAndTimeAreFound) {
  const std::string path = Folder() + "/a.tar";
  const auto replace = [&](const std::string& text, const std::string& other) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    file.close();
    const auto time = fs::last_write_time(path);
    const size_t at = bytes.find(text);
    ASSERT_NE(at, std::string::npos);
    std::ofstream(path, std::ios::binary) << bytes.replace(at, text.size(), other);
    fs::last_write_time(path, time);
  };
  // Four documents, of which the index compares the first, the third and the last.
  std::string tar;
  for (const char* text : {"the first of them", "the second of them", "the third of them", "the fourth of them"})
    tar += TarMemberOf(std::string(text, 5) + text[5] + ".txt", text);
  std::ofstream(path, std::ios::binary) << tar << kTarEnd;
  ASSERT_EQ(Run(2, OneShard()).status, 0);
  fs::copy(RunDir(), Folder() + "/kept", fs::copy_options::recursive);

  replace("the second of", "tho second of");
  const Ended read = Run(6, OneShard());
  EXPECT_EQ(read.status, kExitUsage) << read.output;
  EXPECT_THAT(read.output,
              AllOf(HasSubstr(path + ": document the se: its text is not what was there when the index was "
                                     "made, though its file has the size that it had: run `plan data index "
                                     "--anew` with the recipe"),
                    HasSubstr("once that is mended, to go on after step 2:\n  ")));
  replace("tho second of", "the second of");

  fs::remove_all(RunDir());
  fs::rename(Folder() + "/kept", RunDir());
  replace("the first of", "tho first of");
  const Ended found = Run(6, OneShard());
  EXPECT_EQ(found.status, kExitUsage) << found.output;
  EXPECT_THAT(found.output,
              AllOf(HasSubstr(path + " has the size and the time that it had, and other documents: it is read again"),
                    HasSubstr("the files of source a have other documents than the run was trained on"),
                    HasSubstr("--accept-changes"), Not(HasSubstr("step 3/"))));
}

}  // namespace
}  // namespace planwright::testing
