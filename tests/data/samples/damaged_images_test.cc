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
            folder.path("a.tar") + ": d.jpg (" + folder.path("a.tar") + ": document d): " + damage +
                "; `plan data index --decode` names all such images, and with `data.damaged: skip` their documents are "
                "padding: no other sample changes, and a launch goes on with --accept-changes");

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
              HasSubstr("a.tar: d.png (" + folder_.path("a.tar") + ": document d): " + why));
  folder_.data.damaged = "skip";
  folder_.data.most_damaged = 1;
  EXPECT_EQ(Indexed().padded, 1);
}

// A run that meets an image which cannot be decoded goes on with `damaged: skip` where it was: the document is padding
// in its place, whoever reads it, and all others are where they were.
TEST(DamagedImages, ArePaddingInTheirPlace) {
  std::string broken = GoldenPicture("444.jpg");
  broken.replace(broken.size() - 300, 100, std::string(100, '\xfe'));
  DataFolder folder("images_padding");
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 40; ++i) {
    const std::string name = "d" + std::to_string(100 + i);
    members.emplace_back(name + ".jpg", i == 7 || i == 23 ? broken : GoldenPicture("420.jpg"));
    members.emplace_back(name + ".txt", std::string(1 + i % 5, 't'));
  }
  members.emplace_back("e.txt", "text");
  folder.Write("a.tar", TarOf(members));
  const auto plan = [&] {
    Plan several = PlanOf(folder);  // documents in a sample; the damaged ones are in two windows
    several.data.packing = "first_fit";
    several.budget.sequence_length = 300;
    return several;
  };
  const IndexedSource before = UpdateIndex(folder.data, {.jobs = 1}, {})->front();
  const std::unique_ptr<SampleSource> errors = *OpenSampleSource(plan());
  folder.data.damaged = "skip";
  folder.data.most_damaged = 1;
  EXPECT_THAT(IndexMessage(folder), HasSubstr("more than 1 documents are damaged"));
  folder.data.most_damaged = 2;
  const IndexedSource after = UpdateIndex(folder.data, {.jobs = 3}, {})->front();
  EXPECT_EQ(after.digest, before.digest);
  EXPECT_EQ(std::vector<int64_t>({after.documents, after.left_out, after.padded}), std::vector<int64_t>({41, 2, 2}));
  EXPECT_EQ(after.causes, (std::map<std::string, int64_t>{{"a damaged image", 2}}));
  EXPECT_THAT(folder.Read(after.left_out_list), HasSubstr("document d123: its image d123.jpg: JPEG: its data are"));
  const std::unique_ptr<SampleSource> skips = *OpenSampleSource(plan());
  EXPECT_NE(skips->digest(), errors->digest());  // ranks must agree on what is padding
  const SourceCounts counts = skips->Counts()[0], all = errors->Counts()[0];
  EXPECT_EQ(std::vector<int64_t>({counts.documents, counts.whole, counts.padded, counts.damaged, counts.samples}),
            std::vector<int64_t>({41, 41, 2, 0, all.samples}));
  EXPECT_LT(counts.tokens, all.tokens);
  int padded = 0;
  for (int64_t i = 0; i < 3 * all.samples; ++i) {
    const absl::StatusOr<Sample> ended = errors->Get(i, SampleParts::kAll), read = skips->Get(i, SampleParts::kAll);
    const absl::StatusOr<Sample> text = skips->Get(i, SampleParts::kText);
    ASSERT_TRUE(read.ok() && text.ok()) << read.status();
    EXPECT_EQ(read->tokens, text->tokens) << i;
    if (ended.ok()) {
      EXPECT_EQ(read->tokens, ended->tokens) << i;
      EXPECT_EQ(read->loss_mask, ended->loss_mask) << i;
      ASSERT_EQ(read->images[0].size(), ended->images[0].size()) << i;
      EXPECT_EQ(*skips->Patches(i), *errors->Patches(i)) << i;
      continue;
    }
    ++padded;
    // Of the same documents those with a damaged image are padding, with no loss and no image.
    const Sample meant = *errors->Get(i, SampleParts::kText);
    const SampleOrigin origin = skips->Origin(i);
    int64_t at = 0, images = 0;
    for (const DocumentPart& part : origin.documents) {
      const bool damaged = part.where.ends_with("d107") || part.where.ends_with("d123");
      for (const int64_t end = at + part.end - part.first; at < end; ++at) {
        EXPECT_EQ(read->tokens[at], damaged ? plan().data.pad_token : meant.tokens[at]) << i << " " << at;
        EXPECT_EQ(at > 0 && read->loss_mask[at - 1] != 0, !damaged && at > 0 && meant.loss_mask[at - 1] != 0) << i;
      }
      images += !damaged && part.where.find("document d") != std::string::npos;
    }
    EXPECT_EQ(static_cast<int64_t>(read->images[0].size()), images);
    int64_t patches = 0;
    for (const Image& image : read->images[0]) patches += image.rows * image.cols;
    EXPECT_EQ(*skips->Patches(i), patches);
  }
  EXPECT_EQ(padded, 6);  // both, in each of three epochs
}

}  // namespace
}  // namespace planwright
