// Images that shards name by path and that are not there: renamed folders, deleted files.
#include "planner/data/samples/outside_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "planner/data/samples/index_files.h"
#include "planner/data/samples/sample_source.h"
#include "tests/data/samples/data_folder.h"
#include "tests/data/samples/plans.h"

namespace planwright {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHelp =
    "bring them back to these paths, or prepare the shards again with `--images FOLDER` of where they are now; what is "
    "not there is not damaged, and `data.damaged: skip` does not leave it out";

// A shard of seven documents, each with an image in the folder `photos`.
void WritePhotos(const DataFolder& folder, const std::string& photos = "photos") {
  Members members;
  for (int i = 0; i < 7; ++i) {
    const std::string number = std::to_string(i);
    folder.Write(photos + "/" + number + ".png", PngOfSize(4 + i, 4));
    members.emplace_back(number + ".images", R"([{"file": ")" + photos + "/" + number + R"(.png"}])");
    members.emplace_back(number + ".txt", "text " + number);
  }
  folder.Write("a.tar", TarOf(members));
}

std::string Message(const DataFolder& folder, const IndexOptions& options = {.jobs = 1}) {
  return std::string(UpdateIndex(folder.data, options, {}).status().message());
}

TEST(OutsideImages, OfAFolderThatIsGoneAreNotTakenForDamage) {
  for (const std::string damaged : {"error", "skip"}) {
    DataFolder folder("outside_renamed");
    folder.data.damaged = damaged;
    folder.data.most_damaged = 100;
    WritePhotos(folder);
    const std::string gone =
        "source captions: 7 of 7 images that its shards name by path are not there: there is no "
        "folder " +
        folder.path("photos") + "\n  " + folder.path("photos/0.png") + "\n  " + folder.path("photos/1.png") + "\n  " +
        folder.path("photos/2.png") + "\n  " + folder.path("photos/3.png") + "\n  " + folder.path("photos/4.png") +
        "\n  and 2 more\n" + kHelp;
    // Before there is an index, with one, and where it is made anew.
    fs::rename(folder.path("photos"), folder.path("pictures"));
    EXPECT_EQ(Message(folder), gone) << damaged;
    EXPECT_FALSE(folder.Has(folder.index()));
    fs::rename(folder.path("pictures"), folder.path("photos"));
    ASSERT_EQ(Message(folder), "");
    const std::string bytes = folder.Read(folder.index());
    EXPECT_TRUE(MissingImagesAtHand(folder.data).empty());
    fs::rename(folder.path("photos"), folder.path("pictures"));
    const auto told = UpdateIndex(folder.data, {}, [](const IndexProgress& progress) {
      ADD_FAILURE() << "nothing is to be read, nor to be said of shards: " << progress.note;
    });
    EXPECT_EQ(told.status().message(), gone) << damaged;
    EXPECT_EQ(Message(folder, {.anew = true}), gone) << damaged;
    EXPECT_EQ(folder.Read(folder.index()), bytes);
    const auto at_hand = MissingImagesAtHand(folder.data);
    ASSERT_EQ(at_hand.size(), 1u);
    EXPECT_EQ(at_hand.at("captions").help, kHelp);
    // It comes back, and all is as before.
    fs::rename(folder.path("pictures"), folder.path("photos"));
    EXPECT_EQ(Message(folder), "");
    EXPECT_EQ(folder.Read(folder.index()), bytes);
  }
}

TEST(OutsideImages, ThatWereDeletedAreNamed) {
  DataFolder folder("outside_deleted");
  folder.data.damaged = "skip";
  folder.data.most_damaged = 100;
  WritePhotos(folder);
  ASSERT_EQ(Message(folder), "");
  fs::remove(folder.path("photos/5.png"));
  const std::string one = "source captions: 1 of 7 images that its shards name by path is not there\n  " +
                          folder.path("photos/5.png") + "\n" + kHelp;
  EXPECT_EQ(Message(folder), one);
  EXPECT_EQ(Message(folder, {.anew = true}), one);
  // Beside damage of others.
  folder.Write("b.tar", TarOf({{"d.txt", "<image>"}}));
  folder.data.damaged = "error";
  EXPECT_EQ(Message(folder), one + "\n" + folder.path("b.tar") +
                                 ": document d: its text has 1 marks <image>, and it has 0 images\n"
                                 "`data.damaged: skip` leaves damaged documents out");
}

TEST(OutsideImages, InATarThatIsGone) {
  DataFolder folder("outside_tar");
  folder.data.damaged = "skip";
  folder.data.most_damaged = 100;
  folder.Write("media.data", TarOf({{"m.png", PngOfSize(4, 4)}}));
  const std::string list = R"([{"shard": "media.data", "member": "m.png"}])";
  folder.Write("a.tar", TarOf({{"d.images", list}, {"d.txt", "text"}, {"e.images", list}, {"e.txt", "text"}}));
  ASSERT_EQ(Message(folder), "");
  fs::remove(folder.path("media.data"));
  EXPECT_EQ(Message(folder), "source captions: 2 of 2 images that its shards name by path are not there\n  " +
                                 folder.path("media.data") + "\n  and 1 more\n" + kHelp);
}

// The old folder is gone, and the shards do not name it any more, though the index does.
TEST(OutsideImages, OfShardsThatWerePreparedAgainAreThoseThatTheyNameNow) {
  DataFolder folder("outside_prepared_again");
  WritePhotos(folder, "photos");
  ASSERT_EQ(Message(folder), "");
  fs::remove_all(folder.path("photos"));
  WritePhotos(folder, "images");  // the shard has the size that it had
  EXPECT_EQ(Message(folder), "");
  const auto time = fs::last_write_time(folder.path("a.tar"));
  fs::remove_all(folder.path("images"));
  WritePhotos(folder, "photos");
  fs::last_write_time(folder.path("a.tar"), time);
  EXPECT_EQ(Message(folder), "");
}

TEST(OutsideImages, AreLookedForInBoundedTime) {
  constexpr int64_t kImages = 1'000'003;
  const std::string here = testing::TempDir();
  std::vector<ImageRecord> records(kImages);
  for (size_t i = 0; i < records.size(); ++i) records[i].file = static_cast<uint32_t>(i + 1);
  std::string path;
  ShardSlice slice;
  slice.images = records;
  // The second half is not there.
  slice.file = [&](uint32_t number) {
    path = number <= kImages / 2 ? here : "none/" + std::to_string(number);
    return IndexedFile{path, 0, 0, IndexedFileKind::kPlain};
  };
  const OutsideImages images = LookForImages({slice}, "", 2);
  EXPECT_EQ(images.named, kImages);
  EXPECT_EQ(images.looked, kMostImagesLookedFor);
  EXPECT_EQ(images.missing, kMostImagesLookedFor / 2);
  EXPECT_THAT(MissingOf("captions", images)->what,
              HasSubstr("source captions: 2,048 of 4,096 images that were looked for, among 1,000,003 that its shards "
                        "name by path, are not there: there is no folder none"));
}

TEST(OutsideImages, ThatGoWhileARunReadsEndItWithWhatMendsIt) {
  DataFolder folder("outside_in_a_run");
  WritePhotos(folder);
  ASSERT_EQ(Message(folder), "");
  Plan plan = MockPlan();
  plan.data = folder.data;
  plan.budget.sequence_length = 96;
  plan.data.window = 8;
  plan.data.min_patches = 1;
  plan.data.max_patches = 64;
  plan.data.packing = "none";
  plan.data.shuffle = "none";
  plan.data.encoders = {{"encoder", 256, 1, 1, 64}};
  const auto source = OpenSampleSource(plan);
  ASSERT_TRUE(source.ok()) << source.status();
  fs::remove(folder.path("photos/3.png"));
  EXPECT_TRUE((*source)->Get(2, SampleParts::kAll).ok());
  EXPECT_EQ((*source)->Get(3, SampleParts::kAll).status().message(),
            folder.path("a.tar") + ": document 3: cannot read " + folder.path("photos/3.png") +
                ": No such file or directory; bring it back to this path and launch again: `plan data index --anew` "
                "says which others are not there");
}

}  // namespace
}  // namespace planwright
