// The documents of a checkpoint beside those of now.
#include "planner/state/checkpoint/trained_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::string kOld(64, 'a'), kNew(64, 'b');

TEST(TrainedFiles, OfEachSourceThatBothHave) {
  Manifest manifest;
  manifest.data = {{"books", kOld}, {"code", kOld}, {"gone", kOld}};
  manifest.counters.consumed_samples = 120;
  EXPECT_THAT(OtherFilesLines(manifest, {{"books", kNew}, {"code", kOld}, {"more", kNew}}),
              ElementsAre("the files of source books have other documents than the run was trained on (digest "
                          "bbbbbbbbbbbb instead of aaaaaaaaaaaa)",
                          "samples are other ones from sample 120 on"));
  EXPECT_THAT(OtherFilesLines(manifest, {{"books", kOld}, {"code", kOld}}), IsEmpty());
}

// Checkpoints of before digests were noted, and those of data without an index.
TEST(TrainedFiles, ACheckpointThatSaysNothingIsNotCompared) {
  EXPECT_THAT(OtherFilesLines(Manifest(), {{"books", kNew}}), IsEmpty());
  Manifest manifest;
  manifest.data = {{"books", kOld}};
  EXPECT_THAT(OtherFilesLines(manifest, {}), IsEmpty());
}

TEST(TrainedFiles, OneDigestIsOfNamesAndDigests) {
  EXPECT_EQ(DigestOfAll({}), "");
  const std::string one = DigestOfAll({{"a", kOld}, {"b", kNew}});
  EXPECT_EQ(one.size(), 64U);
  EXPECT_EQ(one, DigestOfAll({{"b", kNew}, {"a", kOld}}));
  EXPECT_NE(one, DigestOfAll({{"a", kNew}, {"b", kOld}}));
  EXPECT_NE(one, DigestOfAll({{"a", kOld}}));
}

}  // namespace
}  // namespace planwright
