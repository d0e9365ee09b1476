// Images that are cut off, damaged within, or to be turned: what the index finds, and what a run says of the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/data/pictures/orientation.h"
#include "planner/data/samples/index_files.h"
#include "planner/data/samples/sample_source.h"
#include "tests/data/pictures/golden.h"
#include "tests/data/samples/data_folder.h"
#include "tests/data/samples/plans.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A plan of the only source of a folder, whose images are resized to 64 pixels or less.
Plan PlanOf(const DataFolder& folder) {
  Plan plan = MockPlan();
  plan.data = folder.data;
  plan.budget.sequence_length = 96;
  plan.data.window = 8;
  plan.data.min_patches = 1;
  plan.data.max_patches = 64;
  plan.data.packing = "none";
  plan.data.shuffle = "none";
  plan.data.encoders = {{"encoder", 256, 1, 1, 64}};  // a patch is a pixel
  return plan;
}

std::string IndexMessage(const DataFolder& folder, const IndexOptions& options = {.jobs = 1}) {
  return std::string(UpdateIndex(folder.data, options, {}).status().message());
}

TEST(DamagedImages, ThatAreCutOffAreFoundByTheIndex) {
  for (const std::string name : {"444.jpg", "progressive_420.jpg", "cmyk.jpg", "rgb.png", "palette.png", "lossy.webp",
                                 "lossless_alpha.webp", "extended.webp"}) {
    const std::string whole = GoldenPicture(name), ending = name.substr(name.find('.') + 1);
    DataFolder folder("images_cut");
    folder.Write("a.tar", TarOf({{"d." + ending, whole}, {"d.txt", "text"}}));
    EXPECT_EQ(IndexMessage(folder), "") << name;
    folder.Write("a.tar", TarOf({{"d." + ending, whole + "bytes behind the end"}, {"d.txt", "text"}}));
    EXPECT_EQ(IndexMessage(folder), "") << name;
    const std::string cut = whole.substr(0, whole.size() * 9 / 10);
    const std::string early = ending == "jpg" ? "JPEG" : ending == "png" ? "PNG" : "WebP";
    folder.Write("a.tar", TarOf({{"d." + ending, cut}, {"d.txt", "text"}}));
    EXPECT_EQ(IndexMessage(folder), folder.path("a.tar") + ": document d: its image d." + ending + ": " + early +
                                        ": the file ends too early\n`data.damaged: skip` leaves damaged documents out")
        << name;
    // Elsewhere too.
    folder.Write("loose", cut);
    folder.Write("a.tar", TarOf({{"d.images", R"([{"file": "loose"}])"}, {"d.txt", "text"}}));
    EXPECT_THAT(IndexMessage(folder), HasSubstr("loose: " + early + ": the file ends too early")) << name;
  }
}

// Damage between the begin and the end is found by decoding, before the run or in it.
TEST(DamagedImages, WithinAreFoundByDecoding) {
  std::string broken = GoldenPicture("444.jpg");
  broken.replace(broken.size() - 300, 100, std::string(100, '\xfe'));
  DataFolder folder("images_within");
  folder.Write("a.tar", TarOf({{"a.jpg", GoldenPicture("420.jpg")},
                               {"a.txt", "whole"},
                               {"d.jpg", broken},
                               {"d.txt", "broken"},
                               {"e.txt", "text"}}));
  ASSERT_EQ(IndexMessage(folder), "");
  const std::string bytes = folder.Read(folder.index());
  const std::string damage = "JPEG: its data are damaged: 45 extraneous bytes before marker 0xd9";
  EXPECT_EQ(IndexMessage(folder, {.jobs = 2, .decode = true}),
            folder.path("a.tar") + ": document d: its image d.jpg: " + damage +
                "\n`data.damaged: skip` leaves damaged documents out");
  EXPECT_EQ(folder.Read(folder.index()), bytes);
  EXPECT_EQ(IndexMessage(folder), "");

  const auto source = OpenSampleSource(PlanOf(folder));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_TRUE((*source)->Get(0, SampleParts::kAll).ok());
  EXPECT_EQ((*source)->Get(1, SampleParts::kAll).status().message(),
            folder.path("a.tar") + ": document d: image 1: " + damage +
                "; `plan data index --decode` names all such images, and `data.damaged: skip` leaves their documents "
                "out: then samples are other ones, and a launch that goes on needs --accept-changes");

  // Of whole images decoding makes the same index.
  folder.Write("a.tar", TarOf({{"a.jpg", GoldenPicture("420.jpg")}, {"a.txt", "whole"}}));
  ASSERT_EQ(IndexMessage(folder), "");
  const std::string whole = folder.Read(folder.index());
  EXPECT_EQ(IndexMessage(folder, {.jobs = 1, .decode = true}), "");
  EXPECT_EQ(folder.Read(folder.index()), whole);
}

// A photo of 7 by 10 pixels, which is to be turned, and one that is not.
class TurnedImages : public ::testing::Test {
 protected:
  TurnedImages() : folder_("images_turned") {
    folder_.Write("loose.webp", GoldenPicture("turned/exif.webp"));
    folder_.Write("a.tar", TarOf({{"a.jpg", GoldenPicture("turned/6.jpg")},
                                  {"a.txt", "turned"},
                                  {"b.jpg", GoldenPicture("turned/1.jpg")},
                                  {"b.txt", "not"},
                                  {"c.images", R"([{"file": "loose.webp"}])"},
                                  {"c.txt", "c"}}));
  }
  IndexedSource Indexed(const IndexOptions& options = {.jobs = 1}) {
    const absl::StatusOr<std::vector<IndexedSource>> made = UpdateIndex(folder_.data, options, {});
    EXPECT_TRUE(made.ok()) << made.status();
    return made.ok() ? made->front() : IndexedSource();
  }
  Image ImageOf(int64_t sample) {
    const auto source = OpenSampleSource(PlanOf(folder_));
    EXPECT_TRUE(source.ok()) << source.status();
    return (*source)->Get(sample, SampleParts::kAll)->images[0].at(0);
  }
  static std::pair<int64_t, int64_t> Grid(const Image& image) { return {image.rows, image.cols}; }

  DataFolder folder_;
};

using Sides = std::pair<int64_t, int64_t>;

TEST_F(TurnedImages, AreCountedAndTakenAsStored) {
  const IndexedSource indexed = Indexed();
  EXPECT_EQ(indexed.turned, 2);
  EXPECT_EQ(Grid(ImageOf(0)), Grid(ImageOf(1)));
  EXPECT_GT(ImageOf(0).cols, ImageOf(0).rows);
}

TEST_F(TurnedImages, AreTurnedBeforePatchesAreCounted) {
  const IndexedSource stored = Indexed();
  const std::string bytes = folder_.Read(folder_.index());
  const Sides lying = Grid(ImageOf(0));
  folder_.data.orientation = "exif";
  const IndexedSource turned = Indexed();
  EXPECT_EQ(turned.shards_read, 0) << "the index has both";
  EXPECT_EQ(folder_.Read(folder_.index()), bytes);
  EXPECT_NE(turned.digest, stored.digest) << "ranks must agree on how images are turned";
  const Sides standing = {lying.second, lying.first};
  EXPECT_EQ(Grid(ImageOf(0)), standing);
  EXPECT_EQ(Grid(ImageOf(1)), lying);
  EXPECT_EQ(Grid(ImageOf(2)), standing);
  const std::string file = GoldenPicture("turned/6.jpg");
  EXPECT_EQ(ImageOf(0).patches, PatchesOfPicture<Bilinear>(file, {standing.first, standing.second}, 1, 6)->patches);
  const auto source = OpenSampleSource(PlanOf(folder_));
  EXPECT_EQ((*source)->SourceDigests().at("captions"), turned.digest);
}

// Without such an image it is the same data with the key and without it, and a run of before goes on.
TEST_F(TurnedImages, WithoutAnyTheDigestStays) {
  folder_.Write("a.tar", TarOf({{"b.jpg", GoldenPicture("turned/1.jpg")}, {"b.txt", "not"}}));
  const std::string stored = Indexed().digest;
  folder_.data.orientation = "exif";
  EXPECT_EQ(Indexed().digest, stored);
}

TEST_F(TurnedImages, OfAPngWhereTheIndexDoesNotLookAreAnError) {
  folder_.Write("a.tar", TarOf({{"d.png", GoldenPicture("turned/far_behind.png")}, {"d.txt", "x"}}));
  EXPECT_EQ(Indexed({.jobs = 1, .decode = true}).turned, 0);
  EXPECT_TRUE(OpenSampleSource(PlanOf(folder_)).value()->Get(0, SampleParts::kAll).ok());
  folder_.data.orientation = "exif";
  const std::string why = "its orientation 6 stands behind its pixels";
  EXPECT_THAT(std::string(UpdateIndex(folder_.data, {.jobs = 1, .decode = true}, {}).status().message()),
              HasSubstr("document d: its image d.png: " + why));
  Indexed();
  EXPECT_THAT(std::string(OpenSampleSource(PlanOf(folder_)).value()->Get(0, SampleParts::kAll).status().message()),
              HasSubstr("document d: image 1: " + why));
  folder_.data.damaged = "skip";
  folder_.data.most_damaged = 1;
  EXPECT_THAT(std::string(UpdateIndex(folder_.data, {.jobs = 1}, {}).status().message()), HasSubstr("no documents"));
}

}  // namespace
}  // namespace planwright
