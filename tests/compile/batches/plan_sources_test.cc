// Data of kind sources: weights as exact whole numbers, and what is wrong with sources, all at once and in its place.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "planner/compile/batches/plan_data.h"
#include "planner/compile/batches/source_files.h"
#include "planner/compile/batches/source_weights.h"
#include "tests/recipe/temp_recipes.h"
#include "tests/support/folders.h"
#include "tests/support/problems.h"

namespace planwright {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<SourceRecipe> Weighted(const std::vector<std::string>& weights) {
  std::vector<SourceRecipe> sources;
  for (const std::string& weight : weights) {
    SourceRecipe& source = sources.emplace_back();
    source.weight = {Decimal{weight}, {std::make_shared<const std::string>("r.yaml"), 7, 1, 1}};
  }
  return sources;
}

TEST(SourceWeights, AreExactlyWhatIsWritten) {
  const auto scaled = [](const std::vector<std::string>& weights) {
    Diagnostics problems;
    const std::vector<int64_t> found = ScaledWeights(Weighted(weights), problems);
    EXPECT_TRUE(problems.empty());
    return found;
  };
  EXPECT_THAT(scaled({"1"}), ElementsAre(1));
  EXPECT_THAT(scaled({"123456789"}), ElementsAre(1));
  EXPECT_THAT(scaled({"3", "0.5"}), ElementsAre(6, 1));
  EXPECT_THAT(scaled({"0.1", "0.2", "0.7"}), ElementsAre(1, 2, 7));
  EXPECT_THAT(scaled({"0.10", "2e-1", "7.0e-1"}), ElementsAre(1, 2, 7));
  EXPECT_THAT(scaled({"1e3", "1E+3", "2000.000000000"}), ElementsAre(1, 1, 2));
  EXPECT_THAT(scaled({"0.000001", "0.999999"}), ElementsAre(1, 999999));
}

TEST(SourceWeights, ThatDoNotFitAreRefusedWithTheNearest) {
  const auto refused = [](const std::vector<std::string>& weights) {
    Diagnostics problems;
    EXPECT_THAT(ScaledWeights(Weighted(weights), problems), ElementsAre());
    std::string text;
    for (const Diagnostic& problem : problems.sorted()) {
      EXPECT_EQ(problem.kind, DiagnosticKind::kSourceWeights);
      EXPECT_EQ(problem.where.line, 7);
      text += problem.message + " | " + problem.help + "\n";
    }
    return text;
  };
  EXPECT_EQ(refused({"0.3333333", "0.6666667"}),
            "the weight 0.3333333 has more than 6 digits after the point | the nearest weights that fit are 333333, "
            "666667\n"
            "the weight 0.6666667 has more than 6 digits after the point | the nearest weights that fit are 333333, "
            "666667\n");
  EXPECT_EQ(refused({"1", "1000000"}),
            "as whole numbers without a common divisor the weights have the sum 1000001, but the limit is 1000000: so "
            "many samples until the order of the sources repeats | the nearest weights that fit are 1, 999999\n");
  EXPECT_EQ(refused({"1", "1e-7"}),
            "the weight 1e-7 has more than 6 digits after the point | the nearest weights that fit are 999999, 1\n");
  EXPECT_EQ(refused({"1", "1e30"}), "the weight 1e30 is too large | the nearest weights that fit are 1, 999999\n");
}

// Recipes of the toy model with a data section of their own, in a folder with files.
class Sources : public testing::Test {
 protected:
  // Kinds, lines (the section begins at line 3) and messages; paths without the folder of the test.
  std::string ProblemsOf(const std::string& data) {
    const std::string path = files_.Write(
        "recipe.yaml", "extends: [" + InSource("recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml") + "]\ndata:\n" + data +
                           "models: {radio_vit_h: {max_image: 256}, nemotron_hybrid_moe_20l: {vocabulary: "
                           "260}}\nbatch: {sequence_length: 192}\n");
    Diagnostics problems;
    const std::optional<Recipe> recipe = ReadRecipe(path, {}, problems);
    if (recipe && recipe->damaged.empty()) plan_ = PlanData(WithPreparedIds(*recipe, problems), problems);
    std::string text;
    helps_.clear();
    for (const Diagnostic& problem : problems.sorted()) {
      text += std::string(KindName(problem.kind)) + ":" + std::to_string(problem.where.line) + ": " + problem.message;
      text += "\n";
      helps_ += problem.help + "\n";
    }
    for (size_t at = 0; (at = text.find(files_.folder(), at)) != std::string::npos;)
      text.erase(at, files_.folder().size() + 1);
    return text;
  }

  // An empty archive, which begins with an empty block.
  void WriteTar(const std::string& name) { files_.Write(name, std::string(1024, '\0')); }

  void WritePrepared(const std::string& folder, int64_t pad, int64_t vocabulary, char digest = 'a',
                     const std::string& text_template = "null", const std::string& image = "256") {
    files_.Write(folder + "/prepared.json",
                 R"({"format": "planwright_prepared", "version": 1, "tokenizer": {"name": "t.json", "sha256": ")" +
                     std::string(64, digest) + R"("}, "template": )" + text_template + R"(, "ids": {"image": )" +
                     image + R"(, "pad": )" + std::to_string(pad) + R"(, "end": 258}, "vocabulary": )" +
                     std::to_string(vocabulary) +
                     R"(, "documents": 0, "tokens": 0, "learnt": 0, "images": 0, "shards": []})");
  }

  TempRecipes files_;
  std::optional<DataPlan> plan_;
  std::string helps_;  // of the problems, a line each
};

TEST_F(Sources, ArePlannedWithTheirNamesAndWeights) {
  WriteTar("a/x-000.tar");
  WriteTar("a/x-001.tar");
  EXPECT_EQ(ProblemsOf("  kind: sources\n"
                       "  sources:\n"
                       "    - {name: captions, kind: webdataset, shards: ['a/x-{000..001}.tar'], weight: 0.3}\n"
                       "    - {kind: webdataset, shards: 'a/*.tar', weight: 0.15, ignore: [json]}\n"),
            "");
  ASSERT_TRUE(plan_);
  ASSERT_EQ(plan_->sources.size(), 2U);
  EXPECT_EQ(plan_->sources[0].name, "captions");
  EXPECT_EQ(plan_->sources[0].weight, 2);
  EXPECT_EQ(plan_->sources[1].name, "source_1");
  EXPECT_EQ(plan_->sources[1].weight, 1);
  EXPECT_THAT(plan_->sources[1].ignore, ElementsAre("json"));
  EXPECT_EQ(plan_->base, files_.folder());
  EXPECT_EQ(plan_->window, 128);
  EXPECT_EQ(plan_->end_token, 258);
}

// The data section of docs/training/data.md that mixes four sources.
TEST_F(Sources, OfThePageAreAccepted) {
  std::ifstream page(InSource("docs/training/data.md"));
  std::string line, data;
  while (std::getline(page, line) && line != "### A mixture of four sources") {
  }
  while (std::getline(page, line) && line != "    data:") {
  }
  while (std::getline(page, line) && line.starts_with("      ")) data += line.substr(4) + "\n";
  const std::string key = "tokenizer_digest: ";
  ASSERT_NE(data.find(key), std::string::npos) << data;
  data.replace(data.find(key) + key.size(), 64, std::string(64, 'a'));  // that of the prepared.json here
  for (const char* folder : {"captions", "chats", "questions"}) {
    WritePrepared(std::string("corpus/") + folder, 257, 260);
    for (int shard = 0; shard < 4; ++shard)
      WriteTar(std::string("corpus/") + folder + "/" + folder + "-00000" + std::to_string(shard) + ".tar");
  }
  files_.Write("corpus/web_text_document.bin", "");
  files_.Write("corpus/web_text_document.idx", std::string("MMIDIDX\0\0", 9));
  EXPECT_EQ(ProblemsOf(data), "");
  ASSERT_TRUE(plan_);
  std::vector<int64_t> weights;
  for (const SourcePlan& source : plan_->sources) weights.push_back(source.weight);
  EXPECT_THAT(weights, ElementsAre(6, 4, 1, 9));
  EXPECT_EQ(plan_->pad_token, 257);
  EXPECT_EQ(plan_->balance, "images");
  EXPECT_EQ(plan_->long_documents, "cut");
  // And a mistake in it is found.
  std::filesystem::remove(files_.folder() + "/corpus/captions/captions-000003.tar");
  EXPECT_EQ(ProblemsOf(data), "DataFile:7: there is no file corpus/captions/captions-000003.tar\n");
}

TEST_F(Sources, HaveAllTheirProblemsToldAtOnce) {
  EXPECT_EQ(ProblemsOf("  kind: sources\n"
                       "  tokenizer_digest: abc\n"
                       "  pad_token: 1\n"
                       "  packing: none\n"
                       "  window: 5\n"
                       "  most_damaged: 3\n"
                       "  sources:\n"
                       "    - {name: a/b, kind: webdataset, shards: gone/x.tar}\n"
                       "    - {name: source_2, kind: tokens, path: text}\n"
                       "    - {kind: webdataset, shards: ['x-{01..02}.tar', 'y*.tar', 'z{', recipe.yaml]}\n"),
            "ConflictingKeys:4: `data.tokenizer_digest` has no effect with tokenizer bytes\n"
            "WrongType:4: `data.tokenizer_digest` must be 64 hex digits, found \"abc\"\n"
            "ConflictingKeys:5: `data.pad_token` has no effect: tokenizer bytes has its own\n"
            "ConflictingKeys:7: `data.window` has no effect with `packing: none`: no documents share a sample\n"
            "ConflictingKeys:8: `data.most_damaged` has no effect with `damaged: error`: the first one is an error\n"
            "BadName:10: \"a/b\" is not a valid name of a source\n"
            "DataNotHere:10: the folder gone is not on this machine, so gone/x.tar is not checked\n"
            "ConflictingKeys:11: the text of a source of kind tokens is ids, but `data.tokenizer` is bytes\n"
            "DataFile:11: there is no file text.bin\n"
            "ConflictingKeys:12: two sources have the name source_2\n"
            "DataFile:12: there is no file x-01.tar, and 1 more are missing\n"
            "DataFile:12: shards y*.tar: no file matches y*.tar\n"
            "DataFile:12: shards z{: a { without its }\n"
            "DataFile:12: recipe.yaml is no tar file: its first header is damaged\n");
}

// What no run reads as it is: the answer is the line that makes shards of it, before the files are there or not.
TEST_F(Sources, ThatAreMadeFirstAreToldWithTheLineThatMakesThem) {
  files_.Write("llava.json", "[]");
  files_.Write("photos.tar.gz", "x");
  const std::string data =
      "  kind: sources\n  image_token: 256\n  sources:\n"
      "    - {kind: webdataset, shards: [llava.json, CHATS.JSONL.GZ, gone/vqa.parquet, photos.tar.gz]}\n";
  EXPECT_THAT(ProblemsOf(data), HasSubstr("DataFile:6: `shards` are tar files, found \"llava.json\"\n"
                                          "DataFile:6: `shards` are tar files, found \"CHATS.JSONL.GZ\"\n"
                                          "DataFile:6: `shards` are tar files, found \"gone/vqa.parquet\"\n"
                                          "DataFile:6: `shards` are not compressed, found \"photos.tar.gz\"\n"));
  EXPECT_THAT(helps_, HasSubstr("./dev prepare --tokenizer FOLDER -o shards llava.json makes shards of it before "
                                "the run; then write shards: [\"shards/*.tar\"], and tokenizer: ids in data\n"));
  // The shards will say their ids, so that nobody has to add them by hand.
  const std::string ids =
      ProblemsOf("  kind: sources\n  tokenizer: ids\n  sources:\n    - {kind: webdataset, shards: [llava.json]}\n");
  EXPECT_THAT(ids, AllOf(HasSubstr("DataFile:6: "), Not(HasSubstr("MissingKey"))));
}

// A table of positions holds max_patches, given or not; larger images are scaled down to it.
TEST_F(Sources, HaveNoMorePatchesThanTheEncoderHasPositions) {
  files_.Write("a.tar", std::string(10240, '\0'));
  const std::string data = "  kind: sources\n  sources: [{kind: webdataset, shards: a.tar}]\n";
  EXPECT_THAT(ProblemsOf(data + "  max_patches: 4096\n"), Not(HasSubstr("ImageGrid")));
  EXPECT_THAT(ProblemsOf(data + "  max_patches: 4097\n"),
              HasSubstr("ImageGrid:5: max_patches is 4097, but the encoder has 64 x 64 = 4096 positions\n"));
  EXPECT_THAT(helps_,
              HasSubstr("write max_patches: 4096, and larger images are scaled down; a side has max_image 256 / "
                        "patch 4 positions\n"));
}

TEST_F(Sources, OfIdsNeedAnIndexThatIsOne) {
  files_.Write("text.bin", "");
  const std::string data =
      "  kind: sources\n  tokenizer: ids\n  image_token: 256\n  pad_token: 1\n  end_token: 2\n"
      "  sources: [{kind: tokens, path: text}]\n";
  // Nobody sees an image, which is a lint of its own.
  const std::string lint =
      "EncoderWithoutImages:2: no source has images: encoder radio_encoder never sees an image and learns nothing\n";
  EXPECT_EQ(ProblemsOf(data), lint + "DataFile:8: there is no file text.idx\n");
  files_.Write("text.idx", "MMIDIDX");
  EXPECT_EQ(ProblemsOf(data), lint + "DataFile:8: text.idx is no index of Megatron-LM: it must begin with MMIDIDX\n");
  files_.Write("text.idx", std::string("MMIDIDX\0\0", 9));
  EXPECT_EQ(ProblemsOf(data), lint);
  ASSERT_TRUE(plan_);
  EXPECT_EQ(plan_->pad_token, 1);
}

TEST_F(Sources, TakeIdsFromTheirShards) {
  const std::string data =
      "  kind: sources\n  tokenizer: ids\n"
      "  sources: [{kind: webdataset, shards: a/x.tar}, {kind: webdataset, shards: b/x.tar}]\n";
  WriteTar("a/x.tar");
  WriteTar("b/x.tar");
  EXPECT_EQ(ProblemsOf(data),
            "MissingKey:2: `data.image_token` is missing: no prepared.json beside the shards says it\n"
            "MissingKey:2: `data.pad_token` is missing: no prepared.json beside the shards says it\n"
            "MissingKey:2: `data.end_token` is missing: no prepared.json beside the shards says it\n");
  WritePrepared("a", 5, 260);
  EXPECT_EQ(ProblemsOf(data), "");
  ASSERT_TRUE(plan_);
  EXPECT_EQ(plan_->image_token, 256);
  EXPECT_EQ(plan_->pad_token, 5);
  EXPECT_EQ(plan_->end_token, 258);
  WritePrepared("b", 6, 260, 'b');
  EXPECT_EQ(ProblemsOf(data),
            "PreparedShards:5: b/prepared.json has the tokenizer " + std::string(64, 'b') +
                ", but a/prepared.json has " + std::string(64, 'a') +
                "\nPreparedShards:5: b/prepared.json has the pad token 6, but a/prepared.json has 5\n");
  WritePrepared("a", 258, 261);
  WritePrepared("b", 258, 261);
  EXPECT_EQ(ProblemsOf(data + "  template_digest: " + std::string(64, 'c') + "\n  end_token: 300\n"),
            "PreparedShards:5: a/prepared.json has ids of a vocabulary of 261, but the model has 260\n"
            "PreparedShards:7: `data.end_token` is 300, but a/prepared.json has 258\n"
            "TokenOutsideVocabulary:7: `data.end_token` 300 is outside the vocabulary of 260\n");
  EXPECT_EQ(ProblemsOf("  kind: sources\n  sources: [{kind: webdataset, shards: a/x.tar}]\n"),
            "PreparedShards:4: the shards beside a/prepared.json are ids, but the tokenizer is bytes\n");
  files_.Write("a/prepared.json", "{");
  EXPECT_THAT(ProblemsOf(data), testing::StartsWith("PreparedShards:5: "));
}

TEST_F(Sources, MixPlainTextWithConversations) {
  const auto with = [](char digit) { return R"({"sha256": ")" + std::string(64, digit) + R"("})"; };
  const std::string data =
      "  kind: sources\n  tokenizer: ids\n  sources: [{kind: webdataset, shards: a/x.tar}, "
      "{kind: webdataset, shards: b/x.tar}, {kind: webdataset, shards: c/x.tar}]\n";
  for (const char* folder : {"a", "b", "c"}) WriteTar(std::string(folder) + "/x.tar");
  WritePrepared("a", 5, 260, 'a', "null", "null");
  WritePrepared("b", 5, 260, 'a', with('b'));
  WritePrepared("c", 5, 260, 'a', with('b'));
  EXPECT_EQ(ProblemsOf(data), "");
  ASSERT_TRUE(plan_);
  EXPECT_EQ(plan_->image_token, 256);
  WritePrepared("c", 5, 260, 'a', with('c'), "7");
  EXPECT_EQ(ProblemsOf(data + "  template_digest: " + std::string(64, 'd') + "\n"),
            "PreparedShards:5: c/prepared.json has the template " + std::string(64, 'c') +
                ", but b/prepared.json has " + std::string(64, 'b') +
                "\nPreparedShards:5: c/prepared.json has the image token 7, but b/prepared.json has 256\n"
                "PreparedShards:6: `data.template_digest` is " +
                std::string(64, 'd') + ", but b/prepared.json has " + std::string(64, 'b') + "\n");
  EXPECT_THAT(helps_,
              HasSubstr("\nprepare the shards again with the template of the model, or name other shards; only "));
}

TEST_F(Sources, HaveAnIdOfItsOwnForImages) {
  EXPECT_EQ(ProblemsOf("  kind: sources\n  tokenizer: ids\n  image_token: 7\n  pad_token: 7\n  end_token: 7\n"
                       "  sources: [{kind: webdataset, shards: gone/x.tar}]\n"),
            "RepeatedTokenId:6: `data.pad_token` and `data.image_token` are both 7\n"
            "RepeatedTokenId:7: `data.end_token` and `data.image_token` are both 7\n"
            "DataNotHere:8: the folder gone is not on this machine, so gone/x.tar is not checked\n");
}

TEST_F(Sources, WhosePatternsNameAFolderThatIsNotHereAreNotChecked) {
  EXPECT_EQ(
      ProblemsOf("  kind: sources\n  sources: [{kind: webdataset, shards: ['gone/*.tar', 'gone/{a,b}/x-?.tar']}]\n"),
      "DataNotHere:4: the folder gone is not on this machine, so gone/*.tar is not checked\n"
      "DataNotHere:4: the folder gone is not on this machine, so gone/{a,b}/x-?.tar is not checked\n");
}

TEST_F(Sources, ThatAreEmptyFilesAreSaidToBe) {
  files_.Write("x.tar", "");
  EXPECT_EQ(ProblemsOf("  kind: sources\n  sources: [{kind: webdataset, shards: x.tar}]\n"),
            "DataFile:4: x.tar is no tar file: it is empty\n");
}

// What nobody could read says nothing: the folder is the cause, and the only problem.
TEST_F(Sources, OfAFolderThatIsNotHereAndHasTheIdsAreAnError) {
  const std::string data =
      "  kind: sources\n  tokenizer: ids\n"
      "  sources: [{kind: webdataset, shards: gone/*.tar}, {kind: tokens, path: lost/text}]\n";
  const auto missing = [](const std::string& folder, const std::string& left) {
    return "DataFile:5: the folder " + folder + " is not on this machine, and the recipe leaves " + left +
           " to its prepared.json\n";
  };
  const std::string all = "`image_token`, `pad_token`, `end_token`";
  EXPECT_EQ(ProblemsOf(data), missing("gone", all) + missing("lost", all));
  EXPECT_THAT(helps_, HasSubstr("correct the name: paths are relative to "));
  EXPECT_EQ(ProblemsOf(data + "  image_token: 256\n  end_token: 258\n"),
            missing("gone", "`pad_token`") + missing("lost", "`pad_token`"));
  // Where the recipe or other shards say them, it is the data of another machine.
  const std::string not_here =
      "DataNotHere:5: the folder gone is not on this machine, so gone/*.tar is not checked\n"
      "DataNotHere:5: the folder lost is not on this machine, so lost/text is not checked\n";
  EXPECT_EQ(ProblemsOf(data + "  image_token: 256\n  pad_token: 257\n  end_token: 258\n"), not_here);
  WriteTar("a/x.tar");
  WritePrepared("a", 257, 260);
  EXPECT_EQ(ProblemsOf("  kind: sources\n  tokenizer: ids\n  sources: [{kind: webdataset, shards: [a/x.tar, "
                       "gone/*.tar]}]\n"),
            "DataNotHere:5: the folder gone is not on this machine, so gone/*.tar is not checked\n");
}

TEST_F(Sources, MustNotBeEmpty) {
  EXPECT_EQ(ProblemsOf("  kind: sources\n  sources: []\n"), "MissingKey:2: `data.sources` is empty\n");
}

TEST_F(Sources, PathsThatNoFileSystemHasAreNamed) {
  const std::string store = ": object stores and URLs are not read: mount the store, and write the path of the file\n";
  EXPECT_EQ(ProblemsOf("  kind: sources\n"
                       "  tokenizer: ids\n"
                       "  pad_token: 257\n"
                       "  end_token: 258\n"
                       "  image_token: 256\n"
                       "  sources:\n"
                       "    - {kind: webdataset, shards: ['s3://b/x-{0..9}.tar', 'http://h/x.tar']}\n"
                       "    - {kind: webdataset, shards: ~/x.tar}\n"
                       "    - {kind: tokens, path: gs://b/t}\n"),
            "DataFile:9: shards s3://b/x-{0..9}.tar" + store + "DataFile:9: shards http://h/x.tar" + store +
                "DataFile:10: shards ~/x.tar: ~ is not read: write the path of the folder\n"
                "DataFile:11: path gs://b/t" +
                store);
}

TEST_F(Sources, APreparedFileThatCannotBeReadIsTheOnlyMistake) {
  WriteTar("a/x.tar");
  files_.Write("a/prepared.json", "{");
  const std::string problems =
      ProblemsOf("  kind: sources\n  tokenizer: ids\n  sources: [{kind: webdataset, shards: a/x.tar}]\n");
  EXPECT_THAT(problems, testing::StartsWith("PreparedShards:5: a/prepared.json: "));
  EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n'), 1) << problems;
  EXPECT_THAT(problems, testing::Not(testing::HasSubstr("exception")));
}

TEST_F(Sources, PinnedDigestsMayHaveCapitalsAndNeedAPreparedFile) {
  WriteTar("a/x.tar");
  WritePrepared("a", 257, 259);
  const std::string data = "  kind: sources\n  tokenizer: ids\n  tokenizer_digest: " + std::string(64, 'A') +
                           "\n  sources: [{kind: webdataset, shards: a/x.tar}]\n";
  EXPECT_EQ(ProblemsOf(data), "");
  EXPECT_EQ(plan_->tokenizer_digest, std::string(64, 'a'));
  std::filesystem::remove(files_.folder() + "/a/prepared.json");
  EXPECT_EQ(
      ProblemsOf(data + "  image_token: 256\n  pad_token: 257\n  end_token: 258\n"),
      "PreparedShards:6: there is no prepared.json beside a/x.tar, which must name the digests that the recipe pins\n");
  // Ids of Megatron-LM need none, also if their folder is looked at first.
  files_.Write("a/t.bin", "");
  files_.Write("a/t.idx", std::string("MMIDIDX\0\0", 9));
  EXPECT_EQ(
      ProblemsOf("  kind: sources\n  tokenizer: ids\n  tokenizer_digest: " + std::string(64, 'a') +
                 "\n  sources: [{kind: tokens, path: a/t}, {kind: webdataset, shards: a/x.tar}]\n"
                 "  image_token: 256\n  pad_token: 257\n  end_token: 258\n"),
      "PreparedShards:6: there is no prepared.json beside a/x.tar, which must name the digests that the recipe pins\n");
}

TEST_F(Sources, IgnoreListsExtensionsThatAreNotRead) {
  WriteTar("a.tar");
  EXPECT_EQ(
      ProblemsOf("  kind: sources\n  sources:\n"
                 "    - {kind: webdataset, shards: a.tar, ignore: [.json, '*', tok, TXT, 0.jpg, images, cls.txt]}\n"),
      "WrongType:5: `ignore` lists extensions of members, found \".json\"\n"
      "WrongType:5: `ignore` lists extensions of members, found \"*\"\n"
      "ConflictingKeys:5: `ignore` has TXT, which documents are made of with tokenizer bytes\n"
      "ConflictingKeys:5: `ignore` has 0.jpg, which documents are made of with tokenizer bytes\n"
      "ConflictingKeys:5: `ignore` has images, which documents are made of with tokenizer bytes\n");
}

TEST_F(Sources, ShardsBelongToAnEntryAndAreNotEmpty) {
  WriteTar("a.tar");
  EXPECT_EQ(ProblemsOf("  kind: sources\n  shards: a.tar\n  sources: [{kind: webdataset, shards: []}]\n"),
            "UnknownKey:4: unknown key \"shards\" in `data`\n"
            "WrongType:5: `data.sources[0].shards` is an empty list\n");
}

}  // namespace
}  // namespace planwright
