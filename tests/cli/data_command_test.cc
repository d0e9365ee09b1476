// `plan data index` as people and scripts use it, and the index that `plan launch` makes before it starts ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "nlohmann/json.hpp"
#include "planner/base/files/exit_status.h"
#include "tests/cli/plan_program.h"
#include "tests/data/samples/shard_files.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;

constexpr size_t kSecondMember = 2048;  // of the shard that is damaged
const std::string kDamage = "/bad.tar: at byte 2048: not a ustar header\n";

class DataCommand : public PlanProgram {
 protected:
  // The words for a recipe whose data are these shards.
  std::string Recipe(const std::string& shards, const std::string& more = "") {
    return InSource("recipes/icons_8r_toy.yaml") +
           " 'data={kind: sources, max_patches: 256, sources: [{name: waves, kind: webdataset, shards: [" + shards +
           "]}], index: " + folder_ + "/index" + more + "}'";
  }

  // A shard that begins as it should, so that `plan validate` takes it, and has no header where its second member is.
  void WriteDamaged(const std::string& name) {
    std::ifstream file(InSource("tests/golden/data_fixtures/webdataset/shard-000000.tar"), std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    bytes.replace(kSecondMember, 512, std::string(512, 'x'));
    Write(name, bytes);
  }

  const std::string shards_ = InSource("tests/golden/data_fixtures/webdataset") + "/*.tar";
};

TEST_F(DataCommand, SaysWhatIsInTheSources) {
  const ProgramResult first = Plan("data index " + Recipe(shards_) + " --jobs 2");
  EXPECT_EQ(first.status, kExitSuccess) << first.err;
  EXPECT_THAT(first.out, HasSubstr("source  kind        shards  read  documents  tokens  images  damaged  digest"));
  EXPECT_THAT(first.out, HasSubstr("waves   webdataset       2     2          5     107       5        0  "));
  EXPECT_THAT(first.err, HasSubstr("index of the data: reading 2 shards, "));
  const ProgramResult again = Plan("data index " + Recipe(shards_) + " --json");
  EXPECT_EQ(again.status, kExitSuccess) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr("reading")));
  const nlohmann::json json = nlohmann::json::parse(again.out);
  ASSERT_EQ(json["sources"].size(), 1u);
  EXPECT_EQ(json["sources"][0]["name"], "waves");
  EXPECT_EQ(json["sources"][0]["shards_read"], 0);
  EXPECT_EQ(json["sources"][0]["documents"], 5);
  EXPECT_THAT(json["sources"][0]["file"].get<std::string>(),
              MatchesRegex(folder_ + "/index/waves\\.[0-9a-f]+\\.index"));
  EXPECT_EQ(json["sources"][0]["digest"].get<std::string>().size(), 64u);
}

TEST_F(DataCommand, ShowSaysHowFullLanesAreOnceThereIsAnIndex) {
  std::string show = "show " + Recipe(shards_, ", balance: images");
  show.insert(show.find(" 'data="), " data");
  const ProgramResult before = Plan(show);
  EXPECT_EQ(before.status, kExitSuccess) << before.err;
  EXPECT_THAT(before.out, AllOf(HasSubstr("how full lanes are is not known: "), HasSubstr("`plan data index`")));
  EXPECT_EQ(Plan("data index " + Recipe(shards_, ", balance: images")).status, kExitSuccess);
  const ProgramResult after = Plan(show);
  EXPECT_THAT(after.out,
              AllOf(HasSubstr("waves   webdataset       1  100.00 %  "),
                    HasSubstr("fullest encoder lane over the mean lane, in patches of the first 30 steps:\n"),
                    HasSubstr("radio_encoder  images (this run)  ")));
  const nlohmann::json work = nlohmann::json::parse(Plan(show + " --json").out)["lane_work"];
  EXPECT_EQ(work["steps"], 30);
  EXPECT_LE(work["fullest_over_mean"][0]["images"]["step"], work["fullest_over_mean"][0]["none"]["step"]);
}

// Masks of a shard of ids: `learnt` documents of `all` are learnt, the last ones.
std::string ShardOfMasks(int all, int learnt) {
  std::string shard;
  for (int i = 0; i < all; ++i) {
    const std::string name = "k" + std::to_string(10000 + i);
    std::string ids;
    for (const char id : {7, 8, 9, 10}) ids += std::string(1, id) + std::string(3, '\0');
    shard += TarMemberOf(name + ".tok", ids) + TarMemberOf(name + ".mask", std::string(4, i >= all - learnt ? 1 : 0));
  }
  return shard + kTarEnd;
}

// By the loss of the router alone a run would train on, and say nothing.
// The file of counts in the folder of the index.
std::string CountedFile(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/index")) {
    if (entry.path().filename().string().starts_with("counted.")) return entry.path().string();
  }
  return "";
}

TEST_F(DataCommand, PlansKnowTheImagesThatTheIndexHasCounted) {
  const std::string full = "Samples count as full of images: `plan data index RECIPE` counts those of the data.";
  const auto memory = [&] {
    const ProgramResult shown = Plan("show " + Recipe(shards_) + " memory --json");
    return nlohmann::json::parse(shown.out)["roles"][0]["total"].get<int64_t>();
  };
  EXPECT_THAT(Plan("show " + Recipe(shards_) + " time").out, HasSubstr(full));
  const int64_t before = memory();
  ASSERT_EQ(Plan("data index " + Recipe(shards_)).status, kExitSuccess);
  // An epoch has two samples, of 2 and 3 images.
  const std::string counted =
      "radio_encoder gets 20 images a step, of 140 patches on average, as the index counts: at "
      "most 3 images and 96 image tokens in a sample.";
  EXPECT_THAT(Plan("show " + Recipe(shards_) + " time").out, HasSubstr(counted));
  EXPECT_LT(memory(), before);
  // A damaged file is as none, and is made again.
  const std::string file = CountedFile(folder_);
  ASSERT_FALSE(file.empty());
  for (const std::string damage : {"", "{\"digest\": 3}", "[]"}) {
    std::ofstream(file) << damage;
    EXPECT_EQ(memory(), before) << damage;
    ASSERT_EQ(Plan("data index " + Recipe(shards_)).status, kExitSuccess);
    EXPECT_LT(memory(), before) << damage;
  }
}

TEST_F(DataCommand, TimesKnowTheDocumentsThatTheIndexHasCounted) {
  const std::string recipe = Recipe(shards_, ", packed_documents: true") + " batch.micro_samples=1";
  const auto time = [&] { return nlohmann::json::parse(Plan("show " + recipe + " time --json").out); };
  EXPECT_THAT(Plan("show " + recipe + " time").out,
              HasSubstr("Samples count as one document: `plan data index RECIPE` counts the documents of the data."));
  EXPECT_EQ(time()["documents"]["known"], false);
  EXPECT_EQ(time()["documents"]["share_of_scores"].get<double>(), 1);
  ASSERT_EQ(Plan("data index " + recipe).status, kExitSuccess);
  EXPECT_THAT(
      Plan("show " + recipe + " time").out,
      ContainsRegex("A sample has [0-9.]+ documents on average, as the index counts: attention computes [0-9.]+ "
                    "% of its scores"));
  const nlohmann::json documents = time()["documents"];
  EXPECT_EQ(documents["known"], true);
  // Five documents in two samples, and what is left of these.
  EXPECT_GE(documents["documents_of_sample"].get<double>(), 2.5);
  EXPECT_LE(documents["documents_of_sample"].get<double>(), 3.5);
  EXPECT_LT(documents["share_of_scores"].get<double>(), 1.0);
  EXPECT_GE(documents["share_of_scores"].get<double>(), 1 / 3.5);
  // `plan data stats` has the same.
  const nlohmann::json stats = nlohmann::json::parse(Plan("data stats " + recipe + " --json").out);
  ASSERT_EQ(stats["documents"].size(), 1u);
  EXPECT_EQ(stats["documents"][0]["documents"].get<double>(), 2 * documents["documents_of_sample"].get<double>());
  EXPECT_THAT(Plan("data stats " + recipe).out, HasSubstr("documents of an epoch of each source, padding too"));
  // Documents that see each other are no matter of times.
  EXPECT_FALSE(nlohmann::json::parse(Plan("show " + Recipe(shards_) + " time --json").out).contains("documents"));
}

TEST_F(DataCommand, SaysWhereCountsCannotBeKept) {
  ASSERT_EQ(Plan("data index " + Recipe(shards_)).status, kExitSuccess);
  const std::string file = CountedFile(folder_);
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  const ProgramResult again = Plan("data index " + Recipe(shards_));
  EXPECT_EQ(again.status, kExitSuccess) << again.err;
  EXPECT_THAT(again.err,
              HasSubstr("warning: what the index counts cannot be kept, so samples count as full of images and as one "
                        "document: "));
}

TEST_F(DataCommand, APlanOfOtherCountsIsNotLaunched) {
  Plan("data index " + Recipe(folder_ + "/*.tar"));
  std::filesystem::copy_file(InSource("tests/golden/data_fixtures/webdataset/shard-000000.tar"), folder_ + "/a.tar");
  const std::string recipe = Recipe(folder_ + "/*.tar"), plan = folder_ + "/plan.json";
  ASSERT_EQ(Plan("data index " + recipe).status, kExitSuccess);
  ASSERT_EQ(Plan("compile " + recipe + " -o " + plan).status, kExitSuccess);
  std::filesystem::copy_file(InSource("tests/golden/data_fixtures/webdataset/shard-000001.tar"), folder_ + "/b.tar");
  const ProgramResult launched = Plan("launch " + plan + " --local --yes --run-dir " + folder_ + "/run");
  EXPECT_EQ(launched.status, kExitUsage) << launched.err;
  EXPECT_THAT(launched.err, HasSubstr(plan + " was compiled when the index of its data had counted other samples: "
                                             "compile the recipe again"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
}

TEST_F(DataCommand, MasksThatLearnNothingAreRefused) {
  const auto words = [&](const std::string& shard, const std::string& more) {
    return InSource("recipes/nemotron_moe_lm_tiny.yaml") +
           " 'data={kind: sources, tokenizer: ids, pad_token: 1, end_token: 2, packing: none, shuffle: none, sources: "
           "[{name: m, kind: webdataset, shards: [" +
           folder_ + "/" + shard + "]}], index: " + folder_ + "/" + shard + ".d}' " + more;
  };
  const std::string launch = " --local --yes --executor " + InBuild("bin/fake_rank") + " --run-dir " + folder_ + "/run";
  Write("none.tar", ShardOfMasks(20, 0));
  Write("some.tar", ShardOfMasks(20, 1));
  for (const std::string& command :
       {"data index " + words("none.tar", ""), "launch " + words("none.tar", "") + launch}) {
    const ProgramResult refused = Plan(command);
    EXPECT_EQ(refused.status, kExitInvalid) << refused.err;
    EXPECT_THAT(refused.err, AllOf(HasSubstr("no token of the 160 samples has a loss: their masks are all 0"),
                                   HasSubstr("PW0607 NoLossTokens")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));
  EXPECT_EQ(Plan("data index " + words("some.tar", "")).status, kExitSuccess);
  // A set of which nothing is learnt has no loss.
  const ProgramResult set = Plan("launch " +
                                 words("some.tar",
                                       "'evaluation={every_samples: 160, sets: [{name: e, samples: 20, "
                                       "sources: [{name: n, kind: webdataset, shards: [" +
                                           folder_ + "/none.tar]}]}]}'") +
                                 launch);
  EXPECT_EQ(set.status, kExitInvalid) << set.err;
  EXPECT_THAT(set.err, HasSubstr("no token of the 20 samples has a loss"));
  // More samples than are looked at: it is told, and the run goes on.
  const std::string many = "budget.train_samples=20000 budget.learning_rate.decay_samples=20000";
  const ProgramResult begins = Plan("data index " + words("none.tar", many));
  EXPECT_EQ(begins.status, kExitSuccess) << begins.err;
  EXPECT_THAT(begins.err, HasSubstr("warning: no token of the first 10,000 samples has a loss"));
}

TEST_F(DataCommand, NamesWhatIsDamaged) {
  WriteDamaged("bad.tar");
  const ProgramResult damaged = Plan("data index " + Recipe(folder_ + "/bad.tar"));
  EXPECT_EQ(damaged.status, kExitInvalid);
  EXPECT_THAT(damaged.err, HasSubstr("error: the data cannot be indexed:\n" + folder_ + kDamage));
  EXPECT_THAT(damaged.out, IsEmpty());
  // A folder where the index is to be that is none.
  std::filesystem::remove_all(folder_ + "/index");
  Write("index", "");
  EXPECT_EQ(Plan("data index " + Recipe(shards_)).status, kExitUsage);
}

// What only shows when documents are packed for this plan.
TEST_F(DataCommand, AndALaunchNameDocumentsThatDoNotFitBeforeRanksStart) {
  const std::string words = Recipe(shards_, ", long: error") + " data.max_patches=16 batch.sequence_length=16",
                    what = "error: the data cannot be used:\n" + InSource("tests/golden/data_fixtures/webdataset/");
  const ProgramResult index = Plan("data index " + words);
  EXPECT_EQ(index.status, kExitInvalid) << index.err;
  EXPECT_THAT(index.err, HasSubstr(what));
  EXPECT_THAT(index.out, HasSubstr("waves   webdataset "));
  for (const std::string way : {"--local --yes", "--slurm", "--agents"}) {
    const ProgramResult launch = Plan("launch " + words + " " + way + " --executor " + InBuild("bin/fake_rank") +
                                      " --run-dir " + folder_ + "/run");
    EXPECT_EQ(launch.status, kExitInvalid) << launch.err;
    EXPECT_THAT(launch.err, HasSubstr(what));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/run")) << way;
  }
}

// What a photo of a phone says, and what becomes of it.
TEST_F(DataCommand, CountsImagesThatAreToBeTurned) {
  const auto photo = [&](const std::string& name) {
    std::ifstream file(InSource("tests/golden/pictures/turned/") + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Write("p.tar", TarMemberOf("a.jpg", photo("6.jpg")) + TarMemberOf("b.jpg", photo("1.jpg")) + kTarEnd);
  const std::string shard = folder_ + "/p.tar",
                    says = "waves: EXIF says of 1 image that it is to be turned, and it is ";
  const ProgramResult stored = Plan("data index " + Recipe(shard));
  EXPECT_EQ(stored.status, kExitSuccess) << stored.err;
  EXPECT_THAT(stored.out, HasSubstr(says + "taken as stored: `orientation: exif` in `data` turns it, as most "
                                           "processors do\n"));
  const ProgramResult turned = Plan("data index " + Recipe(shard, ", orientation: exif"));
  EXPECT_THAT(turned.out, HasSubstr(says + "turned\n"));
  const nlohmann::json json = nlohmann::json::parse(Plan("data index --json " + Recipe(shard)).out);
  EXPECT_EQ(json["sources"][0]["turned"], 1);
  // Where the index is made before ranks start it says so too, and diff knows the key.
  std::filesystem::remove_all(folder_ + "/index");
  EXPECT_THAT(Plan("launch " + Recipe(shard) + " --local --yes --executor " + InBuild("bin/fake_rank") + " --run-dir " +
                   folder_ + "/run")
                  .err,
              HasSubstr("index of the data: " + says));
  const ProgramResult diff =
      Plan("diff " + Recipe(shard, ", orientation: stored") + " -- " + Recipe(shard, ", orientation: exif"));
  EXPECT_THAT(diff.out, HasSubstr("data.orientation"));
}

// By names and sizes that people know: where a file lies, width x height.
TEST_F(DataCommand, CountsImagesThatBecomeSmallerOrLarger) {
  const auto photo = [&](const std::string& name) {
    std::ifstream file(InSource("tests/golden/pictures/") + name, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  Write("p.tar", TarMemberOf("a.JPG", photo("turned/6.jpg")) + TarMemberOf("b.jpg", photo("444.jpg")) +
                     TarMemberOf("._b.jpg", "a note of macOS") + kTarEnd);
  const std::string words =
      Recipe(folder_ + "/p.tar", ", orientation: exif") + " data.max_patches=4 data.min_patches=4";
  const ProgramResult index = Plan("data index " + words);
  EXPECT_EQ(index.status, kExitSuccess) << index.err;
  EXPECT_THAT(index.out,
              HasSubstr("\nwaves: 2 of 2 images have more than max_patches 4 and become smaller; the largest is " +
                        folder_ + "/p.tar: b.jpg, "));
  const nlohmann::json json = nlohmann::json::parse(Plan("data index --json " + words).out)["sources"][0];
  EXPECT_EQ(json["images_smaller"], 2);
  EXPECT_EQ(json["images_larger"], 0);
  EXPECT_EQ(json["largest_image"]["name"], folder_ + "/p.tar: b.jpg");
  EXPECT_THAT(index.out, HasSubstr(", " + std::to_string(json["largest_image"]["width"].get<int>()) + " x " +
                                   std::to_string(json["largest_image"]["height"].get<int>()) + " pixels\n"));
  const ProgramResult larger = Plan("data index " + words + " data.max_patches=256 data.min_patches=256");
  EXPECT_THAT(larger.out, HasSubstr("2 of 2 images have fewer than min_patches 256 and become larger\n"));
}

TEST_F(DataCommand, SaysThatASetReadsItsDocumentsAgainAndAgain) {
  const auto set = [&](int samples) {
    return " 'evaluation={every_samples: 240, sets: [{name: val, samples: " + std::to_string(samples) +
           ", sources: [{name: held_out, kind: webdataset, shards: [" + shards_ + "]}]}]}'";
  };
  const ProgramResult many = Plan("data index " + Recipe(shards_, ", packing: none") + set(500));
  EXPECT_EQ(many.status, kExitSuccess) << many.err;
  EXPECT_THAT(many.err, HasSubstr("warning: evaluation set val reads 500 samples of held_out, which has 5 of 5 "
                                  "documents: each evaluation reads them 100 times; `samples: all` reads each once, "
                                  "5 samples\n"));
  const ProgramResult all = Plan("data index " + Recipe(shards_, ", packing: none") + set(5));
  EXPECT_EQ(all.status, kExitSuccess) << all.err;
  EXPECT_THAT(all.err, Not(HasSubstr("each evaluation reads them")));
}

// Text as well as images. What an index has not counted yet is no number, and no rank runs with it.
TEST_F(DataCommand, CountsAllSamplesOfASet) {
  const std::string words = Recipe(shards_, ", packing: none") +
                            " 'evaluation={every_samples: 240, sets: [{name: val, samples: all, sources: [{name: "
                            "held_out, kind: webdataset, shards: [" +
                            shards_ + "]}]}]}'";
  const auto set = [&] {
    const ProgramResult shown = Plan("show " + words + " data --json");
    EXPECT_EQ(shown.status, kExitSuccess) << shown.err;
    return nlohmann::json::parse(shown.out)["evaluation"]["sets"][0];
  };
  EXPECT_TRUE(set()["samples"].is_null());
  EXPECT_TRUE(set()["rounds"].is_null());
  EXPECT_THAT(Plan("show " + words + " data").out, HasSubstr("\nval  all "));
  const std::string before = folder_ + "/before.json",
                    launch = " --local --yes --executor " + InBuild("bin/fake_rank") + " --run-dir " + folder_;
  EXPECT_EQ(Plan("compile " + words + " -o " + before).status, kExitSuccess);
  const ProgramResult index = Plan("data index " + words);
  EXPECT_EQ(index.status, kExitSuccess) << index.err;
  EXPECT_EQ(set()["samples"], 5);
  const ProgramResult earlier = Plan("launch " + before + launch + "/earlier");
  EXPECT_EQ(earlier.status, kExitUsage);
  EXPECT_THAT(earlier.err, HasSubstr("compile the recipe again"));
  // A launch counts, and compiles with what it has counted.
  std::filesystem::remove_all(folder_ + "/index");
  const ProgramResult launched = Plan("launch " + words + launch + "/run");
  EXPECT_THAT(launched.err, Not(HasSubstr("samples: all")));
  EXPECT_EQ(set()["samples"], 5);
}

// Recipes and data that are shared lie in folders that others cannot write.
TEST_F(DataCommand, SaysWhichKeyNamesAnotherFolderForTheIndex) {
  Write("file", "");
  std::string words = Recipe(shards_);
  words.replace(words.find("/index"), 6, "/file/index");
  const ProgramResult index = Plan("data index " + words);
  EXPECT_EQ(index.status, kExitUsage);
  EXPECT_THAT(index.err, AllOf(HasSubstr("cannot make the folder " + folder_ + "/file/index"),
                               HasSubstr("or where data.index=FOLDER says")));
}

// Samples of the run are whole ones, and add up.
TEST_F(DataCommand, StatsOfTheRunAddUp) {
  std::string words = Recipe(shards_);
  words.replace(words.find("sources: ["), 10,
                "sources: [{name: b, kind: webdataset, weight: 3, shards: [" + shards_ +
                    "]}, {name: c, kind: webdataset, weight: 7, shards: [" + shards_ + "]}, ");
  const auto validity = [&] { return nlohmann::json::parse(Plan("validate " + words + " --json").out)["summary"]; };
  EXPECT_TRUE(validity()["epochs"].is_null());
  EXPECT_THAT(Plan("validate " + words).out, Not(HasSubstr("epochs")));
  ASSERT_EQ(Plan("data index " + words).status, kExitSuccess);
  const nlohmann::json json = nlohmann::json::parse(Plan("data stats " + words + " --json").out);
  EXPECT_THAT(Plan("validate " + words).out, ContainsRegex("\ndata           [0-9.]+ epochs of b, [0-9.]+ epochs of c, "
                                                           "[0-9.]+ epochs of waves\n"));
  for (const nlohmann::json& source : json["sources"])
    EXPECT_EQ(validity()["epochs"][source["name"].get<std::string>()], source["epochs"]);
  int64_t samples = 0;
  for (const nlohmann::json& source : json["sources"]) {
    EXPECT_TRUE(source["run_samples"].is_number_integer());
    samples += source["run_samples"].get<int64_t>();
  }
  EXPECT_EQ(samples, json["run_samples"]);
  ASSERT_EQ(json["read"].size(), 3u);  // all of them, here
  for (size_t i = 0; i < 3; ++i) {
    for (const nlohmann::json& source : json["sources"]) {
      if (source["name"] == json["read"][i]["name"]) EXPECT_EQ(json["read"][i]["samples"], source["run_samples"]);
    }
  }
}

TEST_F(DataCommand, DecodesAndReadsAnewWhatItIsAskedTo) {
  std::ifstream file(InSource("tests/golden/pictures/444.jpg"), std::ios::binary);
  std::string broken(std::istreambuf_iterator<char>(file), {});
  broken.replace(broken.size() - 300, 100, std::string(100, '\xfe'));
  Write("b.tar", TarMemberOf("a.jpg", broken) + TarMemberOf("a.txt", "text") + kTarEnd);
  EXPECT_EQ(Plan("data index " + Recipe(folder_ + "/b.tar")).status, kExitSuccess);
  const ProgramResult decoded = Plan("data index --decode " + Recipe(folder_ + "/b.tar"));
  EXPECT_EQ(decoded.status, kExitInvalid);
  EXPECT_THAT(decoded.err, HasSubstr("document a: its image a.jpg: JPEG: its data are damaged"));
  EXPECT_THAT(Plan("data index " + Recipe(shards_) + " --jobs 1").out, HasSubstr("webdataset       2     2  "));
  EXPECT_THAT(Plan("data index --anew " + Recipe(shards_)).out, HasSubstr("webdataset       2     2  "));
  EXPECT_THAT(Plan("data index --decode " + Recipe(shards_)).out, HasSubstr("webdataset       2     2  "));
  EXPECT_THAT(Plan("data index " + Recipe(shards_)).out, HasSubstr("webdataset       2     0  "));
  const ProgramResult mock = Plan("data index --decode " + InSource("recipes/nemotron_moe_vlm_tiny.yaml"));
  EXPECT_EQ(mock.status, kExitUsage);
  EXPECT_THAT(mock.err, HasSubstr("data of kind mock has no index: `--decode` is for data of kind sources"));
}

TEST_F(DataCommand, SaysWhatItCannotDo) {
  EXPECT_THAT(Plan("data").err, HasSubstr("say what to do: `plan data index`, `stats` or `trace`, and a recipe"));
  EXPECT_THAT(Plan("data indx x.yaml").err, HasSubstr("`plan data` cannot `indx`; did you mean `index`?"));
  EXPECT_EQ(Plan("data index").status, kExitUsage);
  EXPECT_THAT(Plan("data index " + Recipe(shards_) + " --jobs 0").err, HasSubstr("--jobs"));
  const ProgramResult mock = Plan("data index " + InSource("recipes/nemotron_moe_vlm_tiny.yaml"));
  EXPECT_EQ(mock.status, kExitSuccess);
  EXPECT_EQ(mock.out, "data of kind mock has no index\n");
}

// Fake ranks write no traces, so that the first part of the measurement fails; all sizes were looked at before it.
TEST_F(DataCommand, AMeasurementMakesTheIndexAndLeavesOutSizesThatDocumentsDoNotFit) {
  const ProgramResult measured = Plan("measure " + Recipe(shards_, ", long: error") + " batch.sequence_length=96 -o " +
                                      folder_ + "/profile.json --executor " + InBuild("bin/fake_rank"));
  EXPECT_THAT(measured.err, AllOf(HasSubstr("index of the data: waves: 5 documents, "), HasSubstr("part 1 of 6: "),
                                  HasSubstr(" batch.sequence_length=48: ")));
  EXPECT_THAT(measured.err, HasSubstr("left out: "));
}

// Photos that shards name by path: before a rank starts it is told, once, that they are not there.
TEST_F(DataCommand, ImagesThatAreNotThereAreToldBeforeRanksStart) {
  namespace fs = std::filesystem;
  const std::string photos = folder_ + "/photos";
  fs::create_directories(photos);
  std::string tar;
  for (const std::string name : {"0", "1", "2"}) {
    fs::copy_file(InSource("tests/golden/pictures/444.jpg"), photos + "/" + name + ".jpg");
    tar += TarMemberOf(name + ".images", R"([{"file": "photos/)" + name + R"(.jpg"}])") +
           TarMemberOf(name + ".txt", "a photo");
  }
  Write("a.tar", tar + kTarEnd);
  const std::string recipe = Recipe(folder_ + "/a.tar", ", damaged: skip"),
                    launch = "launch " + recipe + " --local --yes --executor " + InBuild("bin/fake_rank") +
                             " --run-dir " + folder_ + "/run",
                    what = "source waves: 2 of 3 images that its shards name by path are not there";
  ASSERT_EQ(Plan("data index " + recipe).status, kExitSuccess);
  EXPECT_EQ(Plan("validate " + recipe).status, kExitSuccess);
  for (const std::string name : {"0", "2"}) fs::remove(photos + "/" + name + ".jpg");
  const std::string told = "error: the data cannot be indexed:\n" + what + "\n  " + photos + "/0.jpg\n  " + photos +
                           "/2.jpg\nbring them back to these paths, or prepare the shards again";
  for (const std::string& words : {"data index " + recipe, "data index --anew " + recipe, launch}) {
    const ProgramResult gone = Plan(words);
    EXPECT_EQ(gone.status, kExitInvalid) << words;
    EXPECT_THAT(gone.err, AllOf(HasSubstr(told), Not(HasSubstr("other documents")))) << words;
    EXPECT_EQ(gone.err.find(what), gone.err.rfind(what)) << gone.err;
  }
  EXPECT_FALSE(fs::exists(folder_ + "/run"));
  const ProgramResult validated = Plan("validate " + recipe);
  EXPECT_EQ(validated.status, kExitInvalid);
  EXPECT_THAT(validated.err, AllOf(HasSubstr(": error: " + what + "; the first: " + photos + "/0.jpg, " + photos +
                                             "/2.jpg [PW0616 FilesDoNotFit]\n"),
                                   HasSubstr("help: bring them back to these paths")));
}

TEST_F(DataCommand, ALaunchMakesTheIndexBeforeRanksStart) {
  const std::string rest = " --local --yes --executor " + InBuild("bin/fake_rank") + " --run-dir " + folder_ + "/run",
                    made = "index of the data: ";
  const ProgramResult first = Plan("launch " + Recipe(shards_) + rest);
  EXPECT_EQ(first.status, kExitSuccess) << first.err;
  EXPECT_THAT(first.err, AllOf(HasSubstr(made + "reading 2 shards"),
                               HasSubstr(made + "waves: 5 documents, 107 tokens, 5 images\n")));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/index/lock"));
  const ProgramResult again = Plan("launch " + Recipe(shards_) + rest + "2");
  EXPECT_EQ(again.status, kExitSuccess) << again.err;
  EXPECT_THAT(again.err, Not(HasSubstr(made)));

  WriteDamaged("bad.tar");
  std::filesystem::remove_all(folder_ + "/run");
  const ProgramResult damaged = Plan("launch " + Recipe(folder_ + "/bad.tar") + rest);
  EXPECT_EQ(damaged.status, kExitInvalid);
  EXPECT_THAT(damaged.err, HasSubstr(folder_ + kDamage));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/run"));

  std::filesystem::remove_all(folder_ + "/index");
  Plan("launch " + Recipe(shards_) + " --slurm --dry-run");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/index"));
}

}  // namespace
}  // namespace planwright::testing
