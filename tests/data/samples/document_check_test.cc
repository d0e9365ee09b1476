// Shards and .bin that are made anew, and have the size and the time that they had: what is read is known not to be
// what was indexed, before a sample is made of it, and the index finds it too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/index_file.h"
#include "planner/data/samples/index_files.h"
#include "tests/data/samples/data_folder.h"
#include "tests/data/samples/token_files.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::unique_ptr<Documents> DocumentsOf(const DataFolder& folder) {
  absl::StatusOr<std::unique_ptr<Documents>> documents = OpenDocuments(folder.data, folder.data.sources[0]);
  EXPECT_TRUE(documents.ok()) << documents.status();
  return documents.ok() ? *std::move(documents) : nullptr;
}

// What is said beside how far it is.
struct Made {
  IndexedSource source;
  std::vector<std::string> notes;
};
Made MadeIndex(const DataFolder& folder, const IndexOptions& options = {.jobs = 2}) {
  Made made;
  const absl::StatusOr<std::vector<IndexedSource>> sources =
      UpdateIndex(folder.data, options, [&](const IndexProgress& progress) {
        if (!progress.note.empty()) made.notes.push_back(progress.note);
      });
  EXPECT_TRUE(sources.ok()) << sources.status();
  if (sources.ok()) made.source = sources->front();
  return made;
}

// Writes other bytes of the same number, with the time of before.
void Replace(const DataFolder& folder, const std::string& file, const std::string& contents) {
  const auto time = std::filesystem::last_write_time(folder.path(file));
  EXPECT_EQ(folder.Read(file).size(), contents.size()) << file;
  folder.Write(file, contents);
  std::filesystem::last_write_time(folder.path(file), time);
}

const std::string kAnother =
    " is not what was there when the index was made, though its file has the size that it had: run `plan data index "
    "--anew` with the recipe, which reads all shards again";

// Texts of 40, 10, 30 and 20 letters, or in another order: other offsets, and one size of the archive.
std::string Letters(const std::vector<int>& lengths) {
  Members members;
  for (size_t i = 0; i < lengths.size(); ++i)
    members.emplace_back("00" + std::to_string(i) + ".txt", std::string(lengths[i], static_cast<char>('a' + i)));
  return TarOf(members);
}

TEST(DocumentCheck, FindsTextsInAnotherOrder) {
  DataFolder folder("check_order");
  folder.Write("a.tar", Letters({40, 10, 30, 20}));
  const Made first = MadeIndex(folder);
  Replace(folder, "a.tar", Letters({10, 40, 20, 30}));
  // A rank that opens the index of before.
  const auto documents = DocumentsOf(folder);
  for (int64_t i = 0; i < 4; ++i) {
    const absl::Status status = documents->ReadText(i).status();
    EXPECT_EQ(status, absl::FailedPreconditionError(folder.path("a.tar") + ": document 00" + std::to_string(i) +
                                                    ": its text" + kAnother));
  }
  const Made again = MadeIndex(folder);
  EXPECT_THAT(again.notes, ElementsAre(folder.path("a.tar") + " has the size and the time that it had, and other "
                                                              "documents: it is read again"));
  EXPECT_EQ(again.source.shards_read, 1);
  EXPECT_NE(again.source.digest, first.source.digest);
  EXPECT_EQ(DocumentsOf(folder)->ReadText(1)->tokens.size(), 41u);
  EXPECT_EQ(MadeIndex(folder).source.shards_read, 0);
}

// Each part of a document: what changes, and that it is found. The other documents stay as they are.
TEST(DocumentCheck, FindsEveryPartOfADocument) {
  const std::string png = PngOfSize(3, 2), other_png = PngOf(3, 2, std::vector<uint8_t>(24, 201));
  ASSERT_EQ(png.size(), other_png.size());
  const Members before = {{"first.tok", TokOf({1, 7})},
                          {"d.mask", std::string("\0\1\1\1", 4)},
                          {"d.tok", TokOf({9, 5, 5, 7})},
                          {"d.images", R"([{"shard": "media.data", "member": "1.png"}, {"file": "loose.png"}])"},
                          {"e.tok", TokOf({5, 7})},
                          {"e.png", png},
                          {"last.tok", TokOf({2, 7})}};
  const auto with = [&](size_t member, const std::string& contents) {
    Members members = before;
    members[member].second = contents;
    return TarOf(members);
  };
  DataFolder folder("check_parts");
  folder.UseIds();
  const std::string media = TarOf({{"1.png", png}, {"2.png", png}});
  const std::string other_media = TarOf({{"1.png", other_png}, {"2.png", png}});
  const auto write_all = [&] {
    folder.Write("media.data", media);
    folder.Write("loose.png", png);
    folder.Write("a.tar", TarOf(before));
    MadeIndex(folder, {.jobs = 1, .anew = true});
  };
  const std::string of_d = folder.path("a.tar") + ": document d: ", of_e = folder.path("a.tar") + ": document e: ";
  for (const auto& [member, contents] : std::vector<std::pair<size_t, std::string>>{
           {1, std::string("\0\0\1\1", 4)},
           {2, TokOf({9, 5, 5, 6})},
           {2, TokOf({5, 9, 5, 7})},
           {2, TokOf({9, 5, 5, 100})},
           {3, R"([{"shard": "media.data", "member": "2.png"}, {"file": "loose.png"}])"}}) {
    write_all();
    Replace(folder, "a.tar", with(member, contents));
    const auto documents = DocumentsOf(folder);
    EXPECT_EQ(documents->ReadText(1).status().message(), of_d + "its text" + kAnother);
    EXPECT_TRUE(documents->ReadText(0).ok());
    EXPECT_TRUE(documents->ReadText(2).ok());
  }
  write_all();
  Replace(folder, "media.data", other_media);
  EXPECT_EQ(DocumentsOf(folder)->ReadPicture(1, 0).status().message(),
            of_d + "its image in " + folder.path("media.data") + kAnother);
  EXPECT_EQ(*DocumentsOf(folder)->ReadPicture(1, 1), png);
  write_all();
  folder.Write("loose.png", other_png);
  EXPECT_EQ(DocumentsOf(folder)->ReadPicture(1, 1).status().message(),
            of_d + "its image in " + folder.path("loose.png") + kAnother);
  write_all();
  Replace(folder, "a.tar", with(5, other_png));
  EXPECT_EQ(DocumentsOf(folder)->ReadPicture(2, 0).status().message(),
            of_e + "its image in " + folder.path("a.tar") + kAnother);
  EXPECT_TRUE(DocumentsOf(folder)->ReadText(2).ok());
}

// A photo that shards name by path is another one: the shard is not. It is named as a person would, by one path.
TEST(DocumentCheck, ThePhotoIsNamedThatIsAnother) {
  const std::string png = PngOfSize(3, 2), other_png = PngOf(3, 2, std::vector<uint8_t>(24, 201));
  DataFolder folder("check_photo");
  folder.UseIds();
  folder.Write("photos/p 0.png", png);
  folder.Write("sh/a.tar", TarOf({{"d.images", R"([{"file": "../photos/p 0.png"}])"}, {"d.tok", TokOf({9, 5, 7})}}));
  folder.data.sources[0].shards = {"sh/*.tar"};
  MadeIndex(folder);
  const std::string photo = folder.path("photos/p 0.png");
  folder.Write("photos/p 0.png", other_png);
  EXPECT_EQ(DocumentsOf(folder)->ReadPicture(0, 0).status().message(),
            folder.path("sh/a.tar") + ": document d: its image in " + photo + kAnother);
  EXPECT_THAT(MadeIndex(folder).notes, ElementsAre(photo + " is not what it was when the index was made: " +
                                                   folder.path("sh/a.tar") + ", which names it, is read again"));
  EXPECT_THAT(MadeIndex(folder).notes, IsEmpty());
  folder.Write("photos/p 0.png", other_png + "more");
  EXPECT_THAT(DocumentsOf(folder)->ReadPicture(0, 0).status().message(), HasSubstr(photo + " has "));
  std::filesystem::remove(photo);
  EXPECT_THAT(DocumentsOf(folder)->ReadPicture(0, 0).status().message(), HasSubstr("cannot read " + photo + ": No"));
}

TEST(PlainPath, LeadsToTheSamePlace) {
  DataFolder folder("plain_path");
  folder.Write("photos/a.png", "");
  folder.Write("far/shards/x", "");
  std::filesystem::create_directory_symlink("far/shards", folder.path("link"));
  EXPECT_EQ(PlainPath(folder.path("far/../photos/./a.png")), folder.path("photos/a.png"));
  EXPECT_EQ(PlainPath(folder.path("far/../photos/none.png")), folder.path("photos/none.png"));
  EXPECT_EQ(PlainPath("a/b"), "a/b");
  // Behind the link .. is another folder.
  EXPECT_EQ(PlainPath(folder.path("link/../photos/a.png")), folder.path("link/../photos/a.png"));
}

// A longer text that begins as the one of before has the same bytes where the index looks.
TEST(DocumentCheck, FindsATextThatGoesOn) {
  DataFolder folder("check_longer");
  folder.Write("a.tar", TarOf({{"a.txt", "one"}, {"b.txt", "two"}, {"c.txt", ""}}) + std::string(512, '\0'));
  MadeIndex(folder);
  Replace(folder, "a.tar", TarOf({{"a.txt", "one and more"}, {"b.txt", "two"}, {"c.txt", "now"}}));
  const auto documents = DocumentsOf(folder);
  EXPECT_THAT(documents->ReadText(0).status().message(), HasSubstr("document a: its text is not what was there"));
  EXPECT_TRUE(documents->ReadText(1).ok());
  EXPECT_THAT(documents->ReadText(2).status().message(), HasSubstr("document c: its text is not what was there"));
}

// Names of files and times of members are no part of a document: a copy that was packed by another program is the same.
TEST(DocumentCheck, ACopyWithOtherTimesIsTheSame) {
  DataFolder folder("check_copy");
  const std::string tar = Letters({4, 5});
  folder.Write("a.tar", tar);
  MadeIndex(folder);
  std::string copy = tar;
  for (size_t at = 0; at < 2048; at += 1024) {
    copy.replace(at + 136, 11, "14723146203");  // the time, and the checksum of the header with it
    copy.replace(at + 148, 8, "        ");
    unsigned sum = 0;
    for (size_t i = 0; i < 512; ++i) sum += static_cast<unsigned char>(copy[at + i]);
    char octal[16];
    std::snprintf(octal, sizeof octal, "%06o", sum);
    copy.replace(at + 148, 7, std::string(octal, 7));
  }
  ASSERT_NE(copy, tar);
  Replace(folder, "a.tar", copy);
  EXPECT_TRUE(DocumentsOf(folder)->ReadText(1).ok());
  EXPECT_EQ(MadeIndex(folder).source.shards_read, 0);
}

// The first, a middle and the last document of shards are looked at: all the shards of a source, if one was made anew.
TEST(DocumentCheck, TheIndexLooksAtAllShardsOnceOneIsAnother) {
  constexpr int kShards = 300;
  DataFolder folder("check_many");
  const auto name = [](int shard) { return "s-" + std::to_string(1000 + shard) + ".tar"; };
  for (int i = 0; i < kShards; ++i) folder.Write(name(i), Letters({5, 6}));
  const std::string digest = MadeIndex(folder).source.digest;
  for (int i = 0; i < kShards; i += 2) Replace(folder, name(i), Letters({6, 5}));
  const Made made = MadeIndex(folder);
  EXPECT_EQ(made.source.shards_read, kShards / 2);
  EXPECT_EQ(made.notes.size(), kShards / 2u);
  EXPECT_NE(made.source.digest, digest);
  for (int i = 0; i < kShards; i += 2) Replace(folder, name(i), Letters({5, 6}));
  EXPECT_EQ(MadeIndex(folder).source.digest, digest);
}

TEST(DocumentCheck, WhatTheIndexDoesNotLookAtIsReadAnew) {
  DataFolder folder("check_anew");
  const auto shard = [](const std::string& second) {
    return TarOf({{"a.txt", "1"}, {"b.txt", second}, {"c.txt", "3"}, {"d.txt", "4"}, {"e.txt", "5"}});
  };
  folder.Write("a.tar", shard("2"));
  const std::string digest = MadeIndex(folder).source.digest;
  Replace(folder, "a.tar", shard("x"));
  EXPECT_EQ(MadeIndex(folder).source.shards_read, 0) << "it looks at the first, the third and the last";
  EXPECT_FALSE(DocumentsOf(folder)->ReadText(1).ok());
  const Made anew = MadeIndex(folder, {.jobs = 1, .anew = true});
  EXPECT_EQ(anew.source.shards_read, 1);
  EXPECT_NE(anew.source.digest, digest);
  EXPECT_THAT(DocumentsOf(folder)->ReadText(1)->tokens, ElementsAre('x', 258));
}

// An index of before has no checks: it is made anew under its name, with the digest that it had (as version 1 made it
// of these files).
TEST(DocumentCheck, AnIndexOfBeforeIsMadeAgain) {
  DataFolder folder("check_before");
  folder.UseIds();
  folder.Write("a.tar", TarOf({{"d.tok", TokOf({5, 1, 7})}, {"d.png", PngOfSize(3, 2)}}));
  const Made now = MadeIndex(folder);
  EXPECT_EQ(now.source.digest, "acb8d518fdbaa382b99483bda53c09c90447c290866782450c29373dc907e908");
  EXPECT_EQ(std::filesystem::path(now.source.path).filename(), "captions.1793c8c47a3d.index");
  const std::string bytes = folder.Read(now.source.path);
  std::string before = bytes;
  before[8] = 1;  // the version
  folder.Write(now.source.path, before);
  const std::string of_version = now.source.path + ": an index of version 1; this program reads version 2";
  EXPECT_EQ(OpenDocuments(folder.data, folder.data.sources[0]).status().message(),
            "source captions: " + of_version + ": run `plan data index` with the recipe");
  const Made again = MadeIndex(folder);
  EXPECT_THAT(again.notes, ElementsAre(of_version + ": all shards are read again"));
  EXPECT_EQ(again.source.shards_read, 1);
  EXPECT_EQ(folder.Read(now.source.path), bytes);
  EXPECT_THAT(MadeIndex(folder).notes, IsEmpty());

  folder.Write("e.tar", TarOf({{"x.mask", std::string("\1\0\1", 3)},
                               {"x.tok", TokOf({5, 1, 7})},
                               {"x.images", R"([{"file": "l.png"}])"}}));
  folder.Write("l.png", PngOfSize(4, 4));
  folder.data.damaged = "skip";
  const Made more = MadeIndex(folder);
  EXPECT_EQ(more.source.digest, "482acca7cd7f2c556292c0aa3e4b2248655c6afb0d2baf1648d9de7b1ab0fc6a");
  EXPECT_EQ(std::filesystem::path(more.source.path).filename(), "captions.8f332c68e7b5.index");
}

TEST(DocumentCheck, FindsABinWithOtherIds) {
  DataFolder folder("check_bin");
  folder.UseIds();
  folder.data.sources[0] = {.name = "text", .kind = SourceKind::kTokens, .path = "t"};
  std::vector<std::vector<std::vector<uint16_t>>> documents(300, {std::vector<uint16_t>(1000, 9)});
  const auto write = [&] {
    const TokenFiles files = FilesOf<uint16_t>(documents, 8);
    folder.Write("t.idx", files.idx);
    folder.Write("t.bin", files.bin);
  };
  write();
  const Made first = MadeIndex(folder);
  // All ids of 20 documents: a file that is made anew differs nearly everywhere.
  for (const size_t changed : {0, 150, 280}) {
    const auto time = std::filesystem::last_write_time(folder.path("t.bin"));
    for (size_t i = changed; i < changed + 20; ++i) documents[i][0].assign(1000, 10);
    write();
    std::filesystem::last_write_time(folder.path("t.bin"), time);
    EXPECT_EQ(
        OpenDocuments(folder.data, folder.data.sources[0]).status().message(),
        "source text: " + folder.path("t.bin") +
            " has other ids than when the index was made, though its size is the same: run `plan data index` with "
            "the recipe");
    const Made again = MadeIndex(folder);
    EXPECT_THAT(again.notes, ElementsAre(folder.path("t.bin") + " has the size and the time that it had, and other "
                                                                "ids: they are read again"));
    EXPECT_EQ(again.source.shards_read, 1);
    EXPECT_NE(again.source.digest, first.source.digest);
    EXPECT_TRUE(OpenDocuments(folder.data, folder.data.sources[0]).ok());
  }
}

}  // namespace
}  // namespace planwright
