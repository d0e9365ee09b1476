// Megatron's .bin and .idx: what its builder writes, every type of whole numbers, and damage.
#include "planner/data/samples/token_documents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <random>

#include "planner/data/samples/index_files.h"
#include "planner/data/samples/mixed_source.h"
#include "tests/data/samples/data_folder.h"
#include "tests/data/samples/token_files.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TokenDocumentsTest : public ::testing::Test {
 protected:
  TokenDocumentsTest() : folder_("token_documents") {}

  // Without an index.
  absl::StatusOr<std::unique_ptr<Documents>> Open(const TokenFiles& files) {
    folder_.Write("t.idx", files.idx);
    folder_.Write("t.bin", files.bin);
    absl::StatusOr<TokenIdx> idx = TokenIdx::Open(folder_.path("t"));
    if (!idx.ok()) return idx.status();
    return MakeTokenDocuments(*std::move(idx), {.vocabulary = 1000, .image_tokens = {77}}, "");
  }

  DataFolder folder_;
};

TEST_F(TokenDocumentsTest, ReadEveryTypeOfWholeNumbers) {
  const auto check = [&](const TokenFiles& files) {
    const auto documents = Open(files);
    ASSERT_TRUE(documents.ok()) << documents.status();
    EXPECT_EQ((*documents)->size(), 2);
    EXPECT_THAT((*documents)->shard_begins(), ElementsAre(0, 2));
    EXPECT_EQ((*documents)->tokens(0), 3);
    EXPECT_THAT((*documents)->ReadText(0)->tokens, ElementsAre(1, 2, 3));
    EXPECT_THAT((*documents)->ReadText(1)->tokens, ElementsAre(100));
    EXPECT_TRUE((*documents)->ReadText(1)->learnt.empty());
    EXPECT_EQ((*documents)->Where(1), folder_.path("t.bin") + ": document 1");
  };
  check(FilesOf<uint8_t>({{{1, 2}, {3}}, {{100}}}, 1));
  check(FilesOf<int8_t>({{{1, 2}, {3}}, {{100}}}, 2));
  check(FilesOf<int16_t>({{{1, 2}, {3}}, {{100}}}, 3));
  check(FilesOf<int32_t>({{{1, 2}, {3}}, {{100}}}, 4));
  check(FilesOf<int64_t>({{{1, 2}, {3}}, {{100}}}, 5));
  check(FilesOf<uint16_t>({{{1, 2}, {3}}, {{100}}}, 8));
}

TEST_F(TokenDocumentsTest, LeaveOutDocumentsWithoutTokens) {
  const auto documents = Open(FilesOf<int32_t>({{}, {{1}}, {{}}, {{}, {2, 3}}, {}, {{4}}, {}}, 4));
  ASSERT_TRUE(documents.ok()) << documents.status();
  EXPECT_EQ((*documents)->size(), 3);
  EXPECT_EQ((*documents)->without_tokens(), 4);
  EXPECT_EQ((*documents)->left_out(), 0);
  EXPECT_THAT((*documents)->ReadText(0)->tokens, ElementsAre(1));
  EXPECT_THAT((*documents)->ReadText(1)->tokens, ElementsAre(2, 3));
  EXPECT_THAT((*documents)->ReadText(2)->tokens, ElementsAre(4));
  EXPECT_EQ((*documents)->Where(1), folder_.path("t.bin") + ": document 3");
  EXPECT_EQ((*documents)->Where(2), folder_.path("t.bin") + ": document 5");
}

// They would use up most_damaged, and an empty text is not damaged.
TEST_F(TokenDocumentsTest, WithoutTokensAreNotDamaged) {
  std::vector<std::unique_ptr<Documents>> documents;
  documents.push_back(*Open(FilesOf<int32_t>({{}, {{1, 2}}, {{}}, {{3}}}, 4)));
  Plan plan;
  plan.data = folder_.data;
  plan.data.vocabulary = 1000;
  plan.data.sources[0] = {.name = "text", .kind = SourceKind::kTokens, .path = "t"};
  plan.data.damaged = "skip";
  plan.data.most_damaged = 0;
  plan.data.window = 4;
  plan.budget.sequence_length = 8;
  const auto mixed = MixSources(plan, std::move(documents));
  ASSERT_TRUE(mixed.ok()) << mixed.status();
  const SourceCounts counts = (*mixed)->Counts()[0];
  EXPECT_EQ(counts.damaged, 0);
  EXPECT_EQ(counts.without_tokens, 2);
  EXPECT_EQ(counts.whole, 2);
  EXPECT_EQ(counts.documents, 4);
}

TEST_F(TokenDocumentsTest, CompareIdsWhenTheyAreRead) {
  const auto documents = Open(FilesOf<int64_t>({{{1}}, {{5, 1000}}, {{-1}}, {{77}}}, 5));
  ASSERT_TRUE(documents.ok()) << documents.status();
  const auto message = [&](int64_t document) {
    return std::string((*documents)->ReadText(document).status().message());
  };
  const std::string where = folder_.path("t.bin") + ": document ";
  EXPECT_EQ(message(1), where + "1: token 1 is 1000, and the vocabulary 1000");
  EXPECT_EQ(message(2), where + "2: token 0 is -1, and the vocabulary 1000");
  EXPECT_EQ(message(3), where + "3: token 0 is 77, the image token; it has no images");
  EXPECT_EQ(std::string((*documents)->ReadPicture(1, 0).status().message()),
            where + "1: a document of tokens has no images");
  folder_.Write("t.bin", "");  // cut off while it is open
  EXPECT_THAT(message(0), HasSubstr("it ends at byte 0, and byte 0 is wanted"));
}

TEST_F(TokenDocumentsTest, SayWhatIsWrongWithTheirFiles) {
  const TokenFiles whole = FilesOf<int32_t>({{{1, 2}, {3}}, {{4}}}, 4);
  const auto message = [&](const TokenFiles& files) {
    std::string text(Open(files).status().message());
    const size_t at = text.find(folder_.path());
    return at == 0 ? text.substr(folder_.path().size() + 1) : text;
  };
  const auto with = [&](size_t at, const std::string& bytes) {
    TokenFiles files = whole;
    files.idx.replace(at, bytes.size(), bytes);
    return files;
  };
  const auto number = [](int64_t value, size_t bytes) {
    return std::string(reinterpret_cast<const char*>(&value), bytes);
  };
  constexpr size_t kLengths = 34, kPointers = kLengths + 3 * 4, kEntries = kPointers + 3 * 8;
  EXPECT_EQ(message(with(0, "X")), "t.idx: it does not begin as Megatron's indexed data sets do (MMIDIDX)");
  EXPECT_EQ(message({"", ""}), "t.idx: it does not begin as Megatron's indexed data sets do (MMIDIDX)");
  EXPECT_EQ(message(with(9, number(2, 8))), "t.idx: it is of version 2; version 1 is read");
  EXPECT_EQ(message(with(17, "\7")),
            "t.idx: its tokens have type 7 (float32); whole numbers are read: uint8, int8, "
            "int16, uint16, int32 and int64");
  EXPECT_EQ(message(with(17, "\x63")),
            "t.idx: its tokens have type 99; whole numbers are read: uint8, int8, int16, uint16, int32 and int64");
  EXPECT_EQ(message({whole.idx.substr(0, whole.idx.size() - 1), whole.bin}),
            "t.idx: it is cut short: it has 93 bytes, too few for its 3 sequences and 3 entries of documents");
  EXPECT_EQ(message(with(18, number(-1, 8))),
            "t.idx: it is cut short: it has 94 bytes, too few for its 18446744073709551615 sequences and 3 entries of "
            "documents");
  EXPECT_EQ(message(with(26, number(0, 8))), "t.idx: it has no entries of documents, not even the first");
  EXPECT_EQ(message({whole.idx + "12", whole.bin}),
            "t.idx: it has 2 bytes behind its entries of documents, where it should end");
  EXPECT_EQ(message({whole.idx + std::string("\0\0\1", 3), whole.bin}),
            "t.idx: it has modes of sequences, as multimodal data sets do; text alone is read");
  EXPECT_TRUE(Open({whole.idx + std::string(3, '\0'), whole.bin}).ok());
  EXPECT_EQ(message(with(kLengths + 4, number(-3, 4))), "t.idx: sequence 1 has -3 tokens");
  EXPECT_EQ(message(with(kPointers + 8, number(-8, 8))),
            "t.idx: sequence 1, 1 tokens of 4 bytes from byte -8 on, does not lie in " + folder_.path("t.bin") +
                ", which has 16 bytes");
  EXPECT_EQ(message({whole.idx, whole.bin.substr(0, 15)}),
            "t.idx: sequence 2, 1 tokens of 4 bytes from byte 12 on, does not lie in " + folder_.path("t.bin") +
                ", which has 15 bytes");
  EXPECT_EQ(message(with(kEntries, number(1, 8))), "t.idx: its first document begins at sequence 1, not at 0");
  EXPECT_EQ(message(with(kEntries + 8, number(9, 8))),
            "t.idx: document 0 has the sequences 0 to 9 of 3: entries of documents must ascend");
  EXPECT_EQ(message(with(kEntries + 16, number(1, 8))),
            "t.idx: document 1 has the sequences 2 to 1 of 3: entries of documents must ascend");
  EXPECT_EQ(message(with(kEntries + 16, number(2, 8))),
            "t.idx: its documents end at sequence 2, and it has 3 sequences");
  EXPECT_EQ(message(FilesOf<int32_t>({{}, {{}}}, 4)), "t.idx: it has no document with tokens");
  std::filesystem::remove(folder_.path("t.bin"));
  EXPECT_EQ(std::string(TokenIdx::Open(folder_.path("t")).status().message()),
            "cannot read " + folder_.path("t.bin") + ": No such file or directory");
}

TEST_F(TokenDocumentsTest, StandAnyBytes) {
  const TokenFiles whole = FilesOf<int16_t>({{{1, 2}, {3}}, {}, {{4}, {5, 6, 7}}}, 3);
  std::mt19937_64 random(1);
  int opened = 0;
  for (int trial = 0; trial < 400; ++trial) {
    TokenFiles files = whole;
    for (int change = 0; change <= trial % 3; ++change)
      files.idx[random() % files.idx.size()] = static_cast<char>(random() % 2 == 0 ? random() % 8 : random());
    if (trial % 5 == 0) files.idx.resize(random() % files.idx.size());
    const auto documents = Open(files);
    if (!documents.ok()) continue;
    ++opened;
    for (int64_t i = 0; i < (*documents)->size(); ++i) {
      const auto text = (*documents)->ReadText(i);
      if (text.ok()) {
        EXPECT_EQ(static_cast<int64_t>(text->tokens.size()), (*documents)->tokens(i));
      }
    }
  }
  EXPECT_GT(opened, 5);
}

// A source of tokens, and what the index makes of it.
class TokenIndexTest : public ::testing::Test {
 protected:
  TokenIndexTest() : folder_("token_index") {
    folder_.data.tokenizer = "ids";
    folder_.data.vocabulary = 1000;
    folder_.data.sources[0] = {.name = "text", .kind = SourceKind::kTokens, .path = "t"};
    EncoderData encoder;
    encoder.token = 77;
    folder_.data.encoders = {encoder};
  }

  void Write(const TokenFiles& files) const {
    folder_.Write("t.idx", files.idx);
    folder_.Write("t.bin", files.bin);
  }
  absl::StatusOr<IndexedSource> Index(int jobs = 1) const {
    absl::StatusOr<std::vector<IndexedSource>> made = UpdateIndex(folder_.data, {.jobs = jobs}, {});
    if (!made.ok()) return made.status();
    return made->front();
  }
  std::string Refusal() const {
    return std::string(OpenDocuments(folder_.data, folder_.data.sources[0]).status().message());
  }

  DataFolder folder_;
};

TEST_F(TokenIndexTest, KeepsWhatWasReadOnce) {
  Write(FilesOf<int32_t>({{{1, 2}}, {}, {{4}}}, 4));
  EXPECT_EQ(Refusal(), "source text: there is no index " + folder_.index() + ": run `plan data index` with the recipe");
  const absl::StatusOr<IndexedSource> made = Index();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(made->documents, 2);
  EXPECT_EQ(made->tokens, 3);
  EXPECT_EQ(made->left_out, 1);
  EXPECT_EQ(made->path, folder_.index());
  EXPECT_EQ(made->shards_read, 1);
  EXPECT_TRUE(made->made);
  EXPECT_EQ((*OpenDocuments(folder_.data, folder_.data.sources[0]))->digest(), made->digest);
  const absl::StatusOr<IndexedSource> again = Index();
  EXPECT_EQ(again->shards_read, 0);
  EXPECT_FALSE(again->made);
  EXPECT_EQ(again->digest, made->digest);
}

TEST_F(TokenIndexTest, DigestCoversTheIds) {
  Write(FilesOf<int32_t>({{{1, 2}}, {{4}}}, 4));
  const std::string before = Index()->digest;
  Write(FilesOf<int32_t>({{{1, 2}}, {{5}}}, 4));  // the same .idx, and a .bin of the same size
  std::filesystem::last_write_time(folder_.path("t.bin"),
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(9));
  const absl::StatusOr<IndexedSource> after = Index();
  EXPECT_EQ(after->shards_read, 1);
  EXPECT_NE(after->digest, before);
  DataFolder copy("token_index_copy");
  copy.data.tokenizer = "ids";
  copy.data.vocabulary = 2000;
  copy.data.sources[0] = {.name = "other", .kind = SourceKind::kTokens, .path = "u"};
  copy.Write("u.idx", folder_.Read("t.idx"));
  copy.Write("u.bin", folder_.Read("t.bin"));
  EXPECT_EQ((*UpdateIndex(copy.data, {}, {}))[0].digest, after->digest);
}

// Several parts (of 4 MiB): the wrong ids are in different ones.
TEST_F(TokenIndexTest, AnyNumberOfJobsGivesTheSameDigestAndMistakes) {
  std::vector<std::vector<std::vector<int64_t>>> documents(3);
  for (auto& document : documents) {
    for (int i = 0; i < 5; ++i) document.push_back(std::vector<int64_t>(100'000, i));
  }
  Write(FilesOf<int64_t>(documents, 5));
  const std::string digest = Index(1)->digest;
  std::filesystem::remove_all(folder_.path("data_index"));
  EXPECT_EQ(Index(3)->digest, digest);
  documents[0][4][7] = 1000;
  documents[2][0][99'999] = 77;
  documents[2][4][0] = -1;
  Write(FilesOf<int64_t>(documents, 5));
  std::filesystem::remove_all(folder_.path("data_index"));
  const std::string where = folder_.path("t.bin") + ": document ";
  for (int jobs : {1, 3}) {
    EXPECT_EQ(std::string(Index(jobs).status().message()),
              where + "0: token 400007 is 1000, and the vocabulary 1000\n" + where +
                  "2: token 99999 is 77, the image token; it has no images");
  }
  EXPECT_FALSE(folder_.Has(folder_.index()));
}

TEST_F(TokenIndexTest, OfOtherFilesOrSettingsIsRefused) {
  const TokenFiles files = FilesOf<uint16_t>({{{1, 2}}, {{4}}}, 8);
  Write(files);
  ASSERT_TRUE(Index().ok());
  const std::string path = folder_.index(), run = ": run `plan data index` with the recipe";
  const std::string other =
      "source text: the index " + path + " was made with other settings, or of another .idx" + run;
  folder_.data.vocabulary = 999;
  EXPECT_EQ(Refusal(), "source text: there is no index " + folder_.index() + run);
  folder_.data.vocabulary = 1000;
  folder_.Write("t.idx", files.idx + std::string(2, '\0'));
  EXPECT_EQ(Refusal(), other);
  folder_.Write("t.idx", files.idx);
  EXPECT_EQ(Refusal(), "");
  folder_.Write("t.bin", files.bin + "xx");
  EXPECT_EQ(Refusal(), "source text: " + folder_.path("t.bin") +
                           " has 8 bytes, and it had 6 when the index was made: run `plan data index` with the recipe");
  folder_.Write("t.bin", files.bin);
  std::string record = folder_.Read(folder_.index());
  record[20] ^= 1;
  folder_.Write(folder_.index(), record);
  EXPECT_EQ(Refusal(), "source text: " + path + " is damaged: run `plan data index` with the recipe");
  EXPECT_TRUE(Index()->made);
  EXPECT_EQ(Refusal(), "");
}

}  // namespace
}  // namespace planwright
