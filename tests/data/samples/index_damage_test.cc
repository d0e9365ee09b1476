// Damaged inputs of an index, each with the exact message; and any bytes in the place of an index file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/index_file.h"
#include "planner/data/samples/index_files.h"
#include "tests/data/samples/data_folder.h"
#include "tests/data/samples/token_files.h"

namespace planwright {
namespace {

using ::testing::HasSubstr;

// What the index says of a folder with these shards and files. FOLDER stands for its path.
std::string MessageOf(const DataFolder& folder) {
  const absl::StatusOr<std::vector<IndexedSource>> made = UpdateIndex(folder.data, {.jobs = 1}, {});
  EXPECT_FALSE(folder.Has(folder.index()));
  std::string message(made.status().message());
  for (size_t at = message.find(folder.path()); at != std::string::npos; at = message.find(folder.path()))
    message.replace(at, folder.path().size(), "FOLDER");
  return message;
}

struct DamagedMember {
  Members members;
  std::string message;  // behind "FOLDER/a.tar: document d: "
};

TEST(IndexDamage, OfDocumentsOfBytesIsNamed) {
  const std::string png = PngOfSize(4, 4);
  std::string no_png = png;
  no_png[1] = 'Q';
  std::string bomb = png;
  bomb.replace(16, 8, std::string("\0\1\0\0\0\1\0\0", 8));  // 65536 x 65536 pixels
  const std::vector<DamagedMember> cases = {
      {{{"d.json", "{}"}},
       "its member d.json is not read: with the tokenizer bytes a document has txt, images, jpg, jpeg, png and webp; "
       "`ignore: [json]` in its source leaves such members out"},
      {{{"d.tok", TokOf({1})}},
       "its member d.tok is not read: with the tokenizer bytes a document has txt, images, jpg, jpeg, png and webp; "
       "`ignore: [tok]` in its source leaves such members out"},
      {{{"d", "x"}},
       "its member d is not read: with the tokenizer bytes a document has txt, images, jpg, jpeg, png and webp"},
      {{{"d.txt", "x"}, {"d.txt", "y"}}, "it has two members d.txt"},
      {{{"d.txt", "a<image>"}}, "its text has 1 marks <image>, and it has 0 images"},
      {{{"d.png", png}, {"d.txt", "<image><image>"}}, "its text has 2 marks <image>, and it has 1 images"},
      {{{"d.png", png}, {"d.jpg", png}},
       "its images d.png and d.jpg have no order: several are called d.0.jpg, d.1.png ..."},
      {{{"d.png", png}, {"d.1.png", png}},
       "its images d.png and d.1.png have no order: several are called d.0.jpg, d.1.png ..."},
      {{{"d.1.png", png}, {"d.01.png", png}},
       "its images d.1.png and d.01.png have no order: several are called d.0.jpg, d.1.png ..."},
      {{{"d.png", no_png}}, "its image d.png: "},
      {{{"d.png", ""}}, "its image d.png: "},
      {{{"d.png", bomb}}, "its image d.png: "},
      {{{"d.images", "[{]"}}, "its .images: "},
      {{{"d.images", "{}"}}, "its .images is no list"},
      {{{"d.images", R"([{"file": "x.png"}, {"file": "x.png", "member": "m"}])"}},
       "entry 1 of its .images is neither {\"shard\": PATH, \"member\": NAME} nor {\"file\": PATH}"},
      {{{"d.images", R"([{"shard": "x.tar", "member": 3}])"}},
       "entry 0 of its .images is neither {\"shard\": PATH, \"member\": NAME} nor {\"file\": PATH}"},
      {{{"d.images", "[]"}, {"d.png", png}}, "it has .images, and images beside its text"},
      {{{"d.images", R"([{"shard": "media.data", "member": "m.png"}])"}},
       "its image 0, FOLDER/media.data, member m.png: it has no member m.png"},
      {{{"d.images", R"([{"shard": "media.data", "member": "twice.png"}])"}},
       "its image 0, FOLDER/media.data, member twice.png: it has several members twice.png"},
      {{{"d.images", R"([{"shard": "cut.data", "member": "twice.png"}])"}},
       "its image 0, FOLDER/cut.data, member twice.png: FOLDER/cut.data: at byte 1024: the archive ends without its "
       "end "
       "mark"}};
  DataFolder folder("index_damage_bytes");
  const std::string media = TarOf({{"twice.png", "1"}, {"twice.png", "2"}});
  folder.Write("media.data", media);
  folder.Write("cut.data", media.substr(0, 1024));
  for (const DamagedMember& one : cases) {
    folder.Write("a.tar", TarOf(one.members));
    const std::string message = MessageOf(folder), begin = "FOLDER/a.tar: document d: " + one.message;
    const bool begins = one.message.ends_with(": ");  // what follows is of the room `pictures`, or of JSON
    const bool of_settings = one.message.find(" is not read: ") != std::string::npos;
    EXPECT_EQ(begins ? message.substr(0, begin.size()) : message,
              begins || of_settings ? begin : begin + "\n`data.damaged: skip` leaves damaged documents out");
  }
}

TEST(IndexDamage, OfDocumentsOfIdsIsNamed) {
  const std::vector<DamagedMember> cases = {
      {{{"d.mask", std::string("\1", 1)}}, "it has no .tok"},
      {{{"d.tok", ""}}, "its .tok is empty"},
      {{{"d.tok", "12345"}}, "its .tok has 5 bytes, no multiple of 4"},
      {{{"d.tok", TokOf({1, 100})}}, "token 1 of its .tok is 100, and the vocabulary 100"},
      {{{"d.tok", TokOf({1, 8})}},
       "token 1 of its .tok is 8, the image token of a further encoder; images are marked by that of the first, 5"},
      {{{"d.tok", TokOf({1, 5})}}, "its .tok has 1 image tokens (id 5), and it has 0 images"},
      {{{"d.tok", TokOf({1, 7})}, {"d.mask", std::string("\1\1\1", 3)}},
       "its .mask has 3 bytes, and its .tok 2 tokens"},
      {{{"d.tok", TokOf({1, 7})}, {"d.mask", std::string("\1\2", 2)}}, "byte 1 of its .mask is 2; it must be 0 or 1"},
      {{{"d.txt", "x"}},
       "its member d.txt is not read: with the tokenizer ids a document has tok, mask, images, jpg, jpeg, png and "
       "webp; "
       "`ignore: [txt]` in its source leaves such members out"}};
  DataFolder folder("index_damage_ids");
  folder.UseIds();
  folder.data.encoders = {{"first", 5, 4, 2, 64}, {"second", 8, 4, 2, 64}};
  for (const DamagedMember& one : cases) {
    folder.Write("a.tar", TarOf(one.members));
    const bool of_settings = one.message.find(" is not read: ") != std::string::npos;
    EXPECT_EQ(MessageOf(folder), "FOLDER/a.tar: document d: " + one.message +
                                     (of_settings ? "" : "\n`data.damaged: skip` leaves damaged documents out"));
  }
}

TEST(IndexDamage, OfImagesWithoutAnImageTokenNamesTheKey) {
  DataFolder folder("index_damage_no_image_token");
  folder.UseIds();
  folder.data.image_token = -1;
  folder.Write("a.tar", TarOf({{"d.png", PngOfSize(4, 4)}, {"d.tok", TokOf({1, 5})}}));
  EXPECT_EQ(MessageOf(folder),
            "FOLDER/a.tar: document d: it has 1 images, and nothing says which id marks them: `data.image_token` does, "
            "or the prepared.json of the shards; without an encoder images and their marks are left out");
}

TEST(IndexDamage, IsToldOnOneLineWhateverNamesAre) {
  DataFolder folder("index_damage_names");
  folder.Write("a.tar", TarOf({{"d\n\x1b.txt", "a<image>"}, {"e.txt", "sound"}}));
  folder.Write("b\n.tar", TarOf({{"f.txt", ""}}) + "x");
  EXPECT_EQ(MessageOf(folder),
            "FOLDER/a.tar: document d\\x0a\\x1b: its text has 1 marks <image>, and it has 0 images\n"
            "FOLDER/b\\x0a.tar: at byte 512: the archive ends, but more than zeros follow, at byte 1536: archives "
            "behind each other are not read; `tar --concatenate` makes one of them\n"
            "`data.damaged: skip` leaves damaged documents out");
  folder.data.sources[0].shards = {"a.tar"};
  folder.data.damaged = "skip";
  folder.data.most_damaged = 1;
  ASSERT_TRUE(UpdateIndex(folder.data, {}, {}).ok());
  EXPECT_EQ(folder.Read(LeftOutPath(folder.data, folder.data.sources[0])),
            folder.path("a.tar") + ": document d\\x0a\\x1b: its text has 1 marks <image>, and it has 0 images\n");
}

TEST(IndexDamage, OfShardsIsNamed) {
  DataFolder folder("index_damage_shards");
  const std::string whole = TarOf({{"d.txt", "1"}, {"e.txt", "2"}, {"d.txt", "3"}});
  const std::vector<std::pair<std::string, std::string>> cases = {
      {whole, "FOLDER/a.tar: document d: it comes twice: the members of a document must be next to each other"},
      {whole.substr(0, 1024), "FOLDER/a.tar: at byte 1024: the archive ends without its end mark"},
      {std::string(600, 'x'), "FOLDER/a.tar: at byte 0: not a ustar header"},
      {"", "FOLDER/a.tar: at byte 0: the archive ends without its end mark"},
      {kTarEnd, "source captions: its shards have no documents"}};
  for (const std::string damaged : {"error", "skip"}) {
    folder.data.damaged = damaged;
    folder.data.most_damaged = 100;
    for (const auto& [contents, message] : cases) {
      folder.Write("a.tar", contents);
      EXPECT_EQ(MessageOf(folder), message) << damaged;
    }
  }
}

TEST(IndexDamage, OfTheListOfShardsIsToldForAllSourcesAtOnce) {
  DataFolder folder("index_damage_lists");
  folder.Write("a.tar", TarOf({{"d.txt", "1"}}));
  SourcePlan source = folder.data.sources[0];
  folder.data.sources.clear();
  for (const auto& [name, pattern] : std::vector<std::pair<std::string, std::string>>{
           {"one", "b*.tar"}, {"two", "{a,b}.tar"}, {"three", "a{.tar"}, {"four", "a.tar"}}) {
    source.name = name;
    source.shards = {pattern};
    folder.data.sources.push_back(source);
  }
  source.name = "five";
  source.kind = SourceKind::kTokens;
  source.path = "text";
  folder.data.sources.push_back(source);
  EXPECT_EQ(MessageOf(folder),
            "source one: shards b*.tar: no file matches FOLDER/b*.tar\n"
            "source two: cannot read FOLDER/b.tar: No such file or directory\n"
            "source three: shards a{.tar: a { without its }\n"
            "source five: cannot read FOLDER/text.idx: No such file or directory");
}

std::string PreparedOf(const std::string& digest, int documents, int tokens, size_t bytes) {
  return R"({"format": "planwright_prepared", "version": 1, "tokenizer": {"name": "t", "sha256": ")" + digest +
         R"("}, "template": null, "ids": {"image": null, "pad": 6, "end": 7}, "vocabulary": 100, "shards": )" +
         R"([{"file": "a.tar", "documents": )" + std::to_string(documents) + R"(, "tokens": )" +
         std::to_string(tokens) + R"(, "bytes": )" + std::to_string(bytes) + "}]}";
}

// Its .bin can lie beside tar shards, and need not have a prepared.json. One that is there is compared.
TEST(IndexDamage, OfWhatIsPreparedForTokensIsNamed) {
  DataFolder folder("index_damage_prepared_tokens");
  folder.UseIds();
  folder.data.sources[0] = {.name = "text", .kind = SourceKind::kTokens, .path = "x/t"};
  folder.data.tokenizer_digest = std::string(64, 'a');
  const std::string missing = "source text: cannot read FOLDER/x/t.idx: No such file or directory";
  EXPECT_EQ(MessageOf(folder), missing);
  folder.Write("x/prepared.json", PreparedOf(std::string(64, 'b'), 1, 2, 3));
  EXPECT_EQ(MessageOf(folder), "source text: FOLDER/x/prepared.json: its tokenizer t has the digest " +
                                   std::string(64, 'b') + ", and tokenizer_digest is " + std::string(64, 'a') + "\n" +
                                   missing);
  std::filesystem::remove(folder.path("x/prepared.json"));
  folder.Write("x/a.tar", TarOf({{"d.tok", TokOf({1, 7})}}));
  SourcePlan shards;
  shards.name = "shards";
  shards.kind = SourceKind::kWebdataset;
  shards.shards = {"x/a.tar"};
  folder.data.sources.push_back(shards);
  EXPECT_EQ(MessageOf(folder),
            "source shards: there is no prepared.json beside FOLDER/x/a.tar, which must name the digests that the "
            "recipe pins\n" +
                missing);
}

TEST(IndexDamage, OfTwoTemplatesIsNamed) {
  DataFolder folder("index_damage_templates");
  folder.UseIds();
  folder.data.sources[0].shards = {"x/a.tar", "y/a.tar", "z/a.tar"};
  const std::string shard = TarOf({{"d.tok", TokOf({1, 7})}}),
                    plain = PreparedOf(std::string(64, 'a'), 1, 2, shard.size());
  const auto with = [&](char digit) {
    std::string text = plain;
    const std::string none = R"("template": null)";
    return text.replace(text.find(none), none.size(), R"("template": {"sha256": ")" + std::string(64, digit) + R"("})");
  };
  for (const char* name : {"x/a.tar", "y/a.tar", "z/a.tar"}) folder.Write(name, shard);
  folder.Write("x/prepared.json", plain);
  folder.Write("y/prepared.json", with('c'));
  folder.Write("z/prepared.json", with('d'));
  EXPECT_EQ(MessageOf(folder), "source captions: FOLDER/z/prepared.json: its template has the digest " +
                                   std::string(64, 'd') + ", and that of FOLDER/y/prepared.json " +
                                   std::string(64, 'c') + "; a run has one template");
  folder.Write("z/prepared.json", with('c'));
  EXPECT_TRUE(UpdateIndex(folder.data, {.jobs = 1}, {}).ok());
}

// Files that a pattern does not name because they are not there, and bytes that no sequence has: neither is an error,
// as both may be meant, and both are told.
TEST(IndexDamage, WhatIsMissingOrTooMuchIsNoted) {
  DataFolder folder("index_damage_notes");
  folder.UseIds();
  folder.data.sources[0].shards = {"x/*.tar"};
  const std::string shard = TarOf({{"d.tok", TokOf({1, 7})}});
  folder.Write("x/a.tar", shard);
  std::string two = PreparedOf(std::string(64, 'a'), 1, 2, shard.size());
  const std::string end = "}]}";
  two.replace(two.size() - end.size(), end.size(),
              R"(}, {"file": "b.tar", "documents": 1, "tokens": 2, "bytes": 3}]})");
  folder.Write("x/prepared.json", two);
  EXPECT_THAT(UpdateIndex(folder.data, {.jobs = 1}, {})->front().notes,
              ::testing::ElementsAre(folder.path("x/prepared.json") +
                                     " knows 1 of its 2 shards that are not in its folder, such as b.tar"));
  folder.Write("x/prepared.json", PreparedOf(std::string(64, 'a'), 1, 2, shard.size()));
  EXPECT_THAT(UpdateIndex(folder.data, {.jobs = 1}, {})->front().notes, ::testing::IsEmpty());

  TokenFiles files = FilesOf<uint16_t>({{{1, 2}, {3}}}, 8);
  folder.Write("t.idx", files.idx);
  folder.Write("t.bin", files.bin + "more");
  folder.data.sources[0] = {.name = "text", .kind = SourceKind::kTokens, .path = "t"};
  EXPECT_THAT(UpdateIndex(folder.data, {.jobs = 1}, {})->front().notes,
              ::testing::ElementsAre(folder.path("t.bin") +
                                     " has 4 bytes behind the last sequence of its .idx, which are not read"));
}

TEST(IndexDamage, OfWhatIsPreparedIsNamed) {
  DataFolder folder("index_damage_prepared");
  folder.UseIds();
  folder.data.sources[0].shards = {"x/a.tar", "y/a.tar"};
  const std::string shard = TarOf({{"d.tok", TokOf({1, 7})}}), a(64, 'a'), b(64, 'b');
  folder.Write("x/a.tar", shard);
  folder.Write("y/a.tar", shard);
  folder.Write("x/prepared.json", PreparedOf(a, 1, 2, shard.size()));
  folder.Write("y/prepared.json", PreparedOf(b, 1, 2, shard.size()));
  EXPECT_EQ(MessageOf(folder), "source captions: FOLDER/y/prepared.json: its tokenizer has the digest " + b +
                                   ", and that of FOLDER/x/prepared.json " + a + "; a run has one tokenizer");
  folder.Write("y/prepared.json", PreparedOf(a, 1, 2, shard.size() + 1));
  EXPECT_EQ(MessageOf(folder), "source captions: FOLDER/y/a.tar has " + std::to_string(shard.size()) +
                                   " bytes, and FOLDER/y/prepared.json says " + std::to_string(shard.size() + 1));
  folder.Write("y/prepared.json", PreparedOf(a, 2, 2, shard.size()));
  EXPECT_EQ(MessageOf(folder), "FOLDER/y/a.tar: it has 1 documents, and its prepared.json says 2");
  folder.Write("y/prepared.json", PreparedOf(a, 1, 3, shard.size()));
  EXPECT_EQ(MessageOf(folder), "FOLDER/y/a.tar: it has 2 tokens, and its prepared.json says 3");
  std::filesystem::rename(folder.path("y/a.tar"), folder.path("y/b.tar"));
  folder.data.sources[0].shards = {"x/a.tar", "y/b.tar"};
  EXPECT_EQ(MessageOf(folder), "source captions: FOLDER/y/prepared.json does not know the shard b.tar");
  std::filesystem::remove(folder.path("y/prepared.json"));
  folder.data.tokenizer_digest = a;
  EXPECT_EQ(MessageOf(folder),
            "source captions: there is no prepared.json beside FOLDER/y/b.tar, which must name the "
            "digests that the recipe pins");
  folder.Write("y/prepared.json", "[]");
  EXPECT_EQ(MessageOf(folder),
            "source captions: FOLDER/y/prepared.json: format is nothing; it must be "
            "\"planwright_prepared\"");
}

// An index of several shards with everything that an index can have.
class AnyIndex : public ::testing::Test {
 protected:
  AnyIndex() : folder_("index_any_bytes") {
    folder_.data.damaged = "skip";
    folder_.data.most_damaged = 9;
    folder_.Write("media/m.data", TarOf({{"p.png", PngOfSize(3, 2)}}));
    folder_.Write("loose.png", PngOfSize(3, 4));
    folder_.Write("a.tar", TarOf({{"one.txt", "text"}, {"one.png", PngOfSize(4, 4)}, {"bad.txt", "<image>"}}));
    folder_.Write("b.tar",
                  TarOf({{"two.txt", "<image>a<image>"},
                         {"two.images", R"([{"shard": "media/m.data", "member": "p.png"}, {"file": "loose.png"}])"}}));
    EXPECT_TRUE(UpdateIndex(folder_.data, {.jobs = 1}, {}).ok());
    bytes_ = folder_.Read(folder_.index());
  }

  // Opens `bytes` as an index, and asks for everything that it has. Returns why it is none; empty: it is one.
  std::string Use(const std::string& bytes) {
    folder_.Write(folder_.index(), bytes);
    const absl::StatusOr<IndexFile> file = IndexFile::Open(folder_.index());
    if (!file.ok()) return std::string(file.status().message());
    for (size_t shard = 0; shard < file->shards().size(); ++shard) {
      const ShardSlice slice = file->Slice(shard);
      for (const ImageRecord& image : slice.images) touched_ += slice.file(image.file).path.size();
      for (const LeftOutDocument& one : slice.left_out) touched_ += one.name.size() + one.why.size();
    }
    const absl::StatusOr<std::unique_ptr<Documents>> documents = OpenDocuments(folder_.data, folder_.data.sources[0]);
    if (!documents.ok()) return "";
    std::vector<PictureRef> pictures;
    for (int64_t i = 0; i < (*documents)->size(); ++i) {
      (*documents)->Pictures(i, pictures);
      touched_ += (*documents)->Where(i).size() + static_cast<size_t>((*documents)->tokens(i));
      touched_ += (*documents)->ReadText(i).ok() ? 1 : 0;
      for (size_t k = 0; k < pictures.size(); ++k)
        touched_ += (*documents)->ReadPicture(i, static_cast<int64_t>(k)).ok() ? 1 : 0;
    }
    return "";
  }

  // With a checksum that fits, so that the other checks are asked.
  static std::string Summed(std::string bytes) {
    if (bytes.size() < sizeof(IndexHeader) || bytes.size() % 8 != 0) return bytes;
    IndexHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    header.checksum = 0;
    uint64_t sum = IndexChecksum(0, &header, sizeof header);
    for (size_t at = sizeof header; at < bytes.size(); at += kChecksumPart)
      sum = IndexChecksum(sum, bytes.data() + at, std::min(kChecksumPart, bytes.size() - at));
    header.checksum = sum;
    std::memcpy(bytes.data(), &header, sizeof header);
    return bytes;
  }

  DataFolder folder_;
  std::string bytes_;
  size_t touched_ = 0;
};

TEST_F(AnyIndex, EveryChangedByteIsFound) {
  EXPECT_EQ(Use(bytes_), "");
  for (size_t i = 0; i < bytes_.size(); i += i < sizeof(IndexHeader) ? 1 : 5) {
    std::string changed = bytes_;
    changed[i] = static_cast<char>(changed[i] ^ (1 << (i % 8)));
    EXPECT_NE(Use(changed), "") << "byte " << i;
  }
  for (size_t bytes = 0; bytes < bytes_.size(); bytes += 29) EXPECT_NE(Use(bytes_.substr(0, bytes)), "");
  EXPECT_NE(Use(bytes_ + std::string(8, '\0')), "");
}

TEST_F(AnyIndex, NumbersThatLeadElsewhereAreFound) {
  std::mt19937_64 random(1);
  int refused = 0;
  for (int trial = 0; trial < 600; ++trial) {
    std::string changed = bytes_;
    for (int change = 0; change <= trial % 3; ++change) {
      // Words of 4 or 8 bytes become small, large, or something that is a number elsewhere in the file.
      const size_t size = random() % 2 == 0 ? 4 : 8, at = random() % (changed.size() / size) * size;
      const uint64_t values[] = {0,           1,           2,           random() % 4096, ~uint64_t{0},
                                 1ull << 31u, 1ull << 63u, 1ull << 40u, random()};
      std::memcpy(changed.data() + at, &values[random() % std::size(values)], size);
    }
    if (trial % 10 == 0) changed.resize(random() % changed.size() / 8 * 8);
    refused += Use(Summed(changed)).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(touched_, 0u);
}

TEST_F(AnyIndex, SaysWhatIsWrong) {
  const auto changed = [&](const std::function<void(IndexHeader&)>& change) {
    std::string bytes = bytes_;
    IndexHeader header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    change(header);
    std::memcpy(bytes.data(), &header, sizeof header);
    return Use(Summed(bytes));
  };
  const std::string path = folder_.index() + ": ";
  EXPECT_EQ(Use("short"), path + "not an index of documents");
  EXPECT_EQ(changed([](IndexHeader& header) { header.version = 1; }),
            path + "an index of version 1; this program reads version 2");
  EXPECT_EQ(changed([](IndexHeader& header) { ++header.documents; }),
            path + "the counts in its header do not fit its size");
  EXPECT_EQ(changed([](IndexHeader& header) { header.images = ~uint64_t{0}; }),
            path + "the counts in its header do not fit its size");
  EXPECT_EQ(changed([](IndexHeader& header) { ++header.tokens; }),
            path + "its shards have 10 tokens, and its header says 11");
  EXPECT_EQ(Use(bytes_.substr(0, bytes_.size() - 8)), path + "it has " + std::to_string(bytes_.size() - 8) +
                                                          " bytes, and its header says " +
                                                          std::to_string(bytes_.size()));
  std::string flipped = bytes_;
  flipped[sizeof(IndexHeader) + 3] ^= 1;
  EXPECT_EQ(Use(flipped), path + "its checksum does not fit: some of its bytes are damaged");
  const absl::Status opened = OpenDocuments(folder_.data, folder_.data.sources[0]).status();
  EXPECT_EQ(std::string(opened.message()), "source captions: " + path +
                                               "its checksum does not fit: some of its bytes are damaged: run `plan "
                                               "data index` with the recipe");
  EXPECT_TRUE(UpdateIndex(folder_.data, {.jobs = 1}, {}).ok());  // makes it anew
  EXPECT_EQ(folder_.Read(folder_.index()), bytes_);
}

}  // namespace
}  // namespace planwright
