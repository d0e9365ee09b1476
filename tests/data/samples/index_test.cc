// The index of a source's shards, and the documents that are read by it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/index_files.h"
#include "tests/data/samples/data_folder.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<IndexedSource> Indexed(const DataFolder& folder, int jobs = 1) {
  absl::StatusOr<std::vector<IndexedSource>> made = UpdateIndex(folder.data, {.jobs = jobs}, {});
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *made : std::vector<IndexedSource>(folder.data.sources.size());
}

std::unique_ptr<Documents> Opened(const DataFolder& folder, size_t source = 0) {
  absl::StatusOr<std::unique_ptr<Documents>> documents = OpenDocuments(folder.data, folder.data.sources[source]);
  EXPECT_TRUE(documents.ok()) << documents.status();
  return documents.ok() ? *std::move(documents) : nullptr;
}

// Documents of all forms of the tokenizer `bytes`, in two shards and an empty one between them.
void WriteBytesShards(const DataFolder& folder) {
  folder.Write("a.tar", TarOf({{"x/one.png", PngOfSize(6, 4)},
                               {"x/one.txt", "hi"},
                               {"two.txt", "a<image>b<image>"},
                               {"two.1.png", PngOfSize(2, 3)},
                               {"two.0.PNG", PngOfSize(5, 1)},
                               {"three.txt", "text alone"}}));
  folder.Write("b.tar", TarOf({}));
  folder.Write("c.tar", TarOf({{"four.png", PngOfSize(7, 7)}}));
}

TEST(Index, HasTheTextsAndImagesOfBytes) {
  DataFolder folder("index_bytes");
  WriteBytesShards(folder);
  const std::vector<IndexedSource> made = Indexed(folder);
  EXPECT_EQ(made[0].documents, 4);
  EXPECT_EQ(made[0].tokens, 4 + 5 + 11 + 2);
  EXPECT_EQ(made[0].images, 4);
  EXPECT_EQ(made[0].shards, 3);
  EXPECT_EQ(made[0].shards_read, 3);
  EXPECT_TRUE(made[0].made);
  EXPECT_EQ(made[0].path, folder.index());
  EXPECT_FALSE(folder.Has(IndexPartsFolder(folder.data, folder.data.sources[0])));
  EXPECT_FALSE(folder.Has(LeftOutPath(folder.data, folder.data.sources[0])));

  const auto documents = Opened(folder);
  ASSERT_NE(documents, nullptr);
  EXPECT_EQ(documents->size(), 4);
  EXPECT_THAT(documents->shard_begins(), ElementsAre(0, 3, 3, 4));
  EXPECT_EQ(documents->digest(), made[0].digest);
  EXPECT_EQ(documents->Where(0), folder.path("a.tar") + ": document x/one");
  EXPECT_EQ(documents->Where(3), folder.path("c.tar") + ": document four");
  EXPECT_THAT(documents->ReadText(0)->tokens, ElementsAre(kImageMark, 'h', 'i', 258));
  EXPECT_THAT(documents->ReadText(1)->tokens, ElementsAre('a', kImageMark, 'b', kImageMark, 258));
  EXPECT_THAT(documents->ReadText(3)->tokens, ElementsAre(kImageMark, 258));
  EXPECT_THAT(documents->ReadText(2)->learnt, IsEmpty());
  std::vector<PictureRef> pictures;
  documents->Pictures(1, pictures);
  ASSERT_EQ(pictures.size(), 2u);  // in the order of their numbers
  EXPECT_EQ(pictures[0].width, 5);
  EXPECT_EQ(pictures[0].height, 1);
  EXPECT_EQ(pictures[0].mark, 1);
  EXPECT_EQ(pictures[1].width, 2);
  EXPECT_EQ(pictures[1].mark, 3);
  documents->Pictures(2, pictures);
  EXPECT_THAT(pictures, IsEmpty());
  EXPECT_EQ(*documents->ReadPicture(1, 1), PngOfSize(2, 3));
  EXPECT_EQ(*documents->ReadPicture(3, 0), PngOfSize(7, 7));
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(documents->tokens(i), static_cast<int64_t>(documents->ReadText(i)->tokens.size()));
}

TEST(Index, HasIdsMasksAndImagesElsewhere) {
  DataFolder folder("index_ids");
  folder.UseIds();
  folder.data.sources[0].shards = {"out/s-{0..1}.tar"};
  folder.data.sources[0].ignore = {"JSON"};
  folder.Write("media/m.tar", TarOf({{"p/1.png", PngOfSize(3, 2)}, {"p/2.png", PngOfSize(4, 9)}}));
  folder.Write("out/loose.png", PngOfSize(8, 1));
  folder.Write("out/s-0.tar",
               TarOf({{"a.images", R"([{"shard": "../media/m.tar", "member": "p/2.png"}, {"file": "loose.png"}])"},
                      {"a.mask", std::string("\0\0\1\1", 4)},
                      {"a.tok", TokOf({5, 9, 5, 7})},
                      {"a.json", "{}"}}));
  folder.Write("out/s-1.tar",
               TarOf({{"b.tok", TokOf({1, 7})},
                      {"c.tok", TokOf({5, 7})},
                      {"c.images", R"([{"shard": ")" + folder.path("media/m.tar") + R"(", "member": "p/1.png"}])"}}));
  Indexed(folder);
  const auto documents = Opened(folder);
  ASSERT_NE(documents, nullptr);
  EXPECT_EQ(documents->size(), 3);
  const absl::StatusOr<Documents::Text> text = documents->ReadText(0);
  EXPECT_THAT(text->tokens, ElementsAre(kImageMark, 9, kImageMark, 7));
  EXPECT_THAT(text->learnt, ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(documents->ReadText(1)->learnt, IsEmpty());
  EXPECT_EQ(*documents->ReadPicture(0, 0), PngOfSize(4, 9));
  EXPECT_EQ(*documents->ReadPicture(0, 1), PngOfSize(8, 1));
  EXPECT_EQ(*documents->ReadPicture(2, 0), PngOfSize(3, 2));
  std::vector<PictureRef> pictures;
  documents->Pictures(0, pictures);
  EXPECT_EQ(pictures[0].height, 9);
  EXPECT_EQ(pictures[1].width, 8);
  EXPECT_EQ(pictures[1].mark, 2);
}

// Many documents in several shards, some with images in a tar that the shards share.
void WriteManyShards(const DataFolder& folder, int shards) {
  Members media;
  for (int i = 0; i < 20; ++i) media.emplace_back("m" + std::to_string(i) + ".png", PngOfSize(1 + i, 2));
  folder.Write("media/all.tar", TarOf(media));
  for (int shard = 0; shard < shards; ++shard) {
    Members members;
    for (int i = 0; i < 20; ++i) {
      const std::string name = std::to_string(shard) + "_" + std::to_string(i);
      std::vector<uint32_t> ids(static_cast<size_t>(1 + (i + shard) % 7), 9);
      if (i % 3 == 0) {
        ids.push_back(5);
        members.emplace_back(name + ".images",
                             R"([{"shard": "media/all.tar", "member": "m)" + std::to_string(i) + R"(.png"}])");
      }
      ids.push_back(7);
      members.emplace_back(name + ".tok", TokOf(ids));
    }
    folder.Write("s-" + std::to_string(shard) + ".tar", TarOf(members));
  }
}

TEST(Index, IsTheSameWithAnyNumberOfThreadsAndAfterAnInterruption) {
  DataFolder folder("index_same");
  folder.UseIds();
  WriteManyShards(folder, 8);
  const std::string digest = Indexed(folder, 1)[0].digest;
  const std::string bytes = folder.Read(folder.index());
  std::filesystem::remove_all(folder.path("data_index"));
  EXPECT_EQ(Indexed(folder, 4)[0].digest, digest);
  EXPECT_EQ(folder.Read(folder.index()), bytes);

  // A process that ends in the middle, when it has read three shards.
  std::filesystem::remove_all(folder.path("data_index"));
  const pid_t child = fork();
  if (child == 0) {
    (void)UpdateIndex(folder.data, {.jobs = 1}, [](const IndexProgress& progress) {
      if (progress.shards == 3) _exit(3);
    });
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(WEXITSTATUS(status), 3);
  EXPECT_FALSE(folder.Has(folder.index()));
  EXPECT_EQ(Indexed(folder, 2)[0].shards_read, 5);
  EXPECT_EQ(folder.Read(folder.index()), bytes);

  // A damaged shard at the end stops the command when the others are finished.
  std::filesystem::remove_all(folder.path("data_index"));
  const std::string last = folder.Read("s-7.tar");
  const auto time = std::filesystem::last_write_time(folder.path("s-7.tar"));
  folder.Write("s-7.tar", last.substr(0, 700));
  EXPECT_FALSE(UpdateIndex(folder.data, {.jobs = 2}, {}).ok());
  EXPECT_FALSE(folder.Has(folder.index()));
  EXPECT_TRUE(folder.Has(IndexPartsFolder(folder.data, folder.data.sources[0])));
  folder.Write("s-7.tar", last);
  std::filesystem::last_write_time(folder.path("s-7.tar"), time);
  EXPECT_EQ(Indexed(folder, 2)[0].shards_read, 1);
  EXPECT_EQ(folder.Read(folder.index()), bytes);
  EXPECT_FALSE(folder.Has(IndexPartsFolder(folder.data, folder.data.sources[0])));
}

TEST(Index, ReadsOnlyWhatHasChanged) {
  DataFolder folder("index_changed");
  folder.UseIds();
  WriteManyShards(folder, 4);
  const IndexedSource first = Indexed(folder)[0];
  const IndexedSource again = Indexed(folder)[0];
  EXPECT_FALSE(again.made);
  EXPECT_EQ(again.shards_read, 0);
  EXPECT_EQ(again.digest, first.digest);

  folder.Write("s-1.tar", TarOf({{"new.tok", TokOf({1, 2, 7})}}));
  const IndexedSource changed = Indexed(folder)[0];
  EXPECT_TRUE(changed.made);
  EXPECT_EQ(changed.shards_read, 1);
  EXPECT_EQ(changed.documents, 61);
  EXPECT_NE(changed.digest, first.digest);

  folder.Write("s-15.tar", folder.Read("s-1.tar"));  // between two others
  EXPECT_EQ(Indexed(folder)[0].shards_read, 1);
  std::filesystem::remove(folder.path("s-0.tar"));
  EXPECT_EQ(Indexed(folder)[0].shards_read, 0);
  const std::string updated = folder.Read(folder.index());
  std::filesystem::remove_all(folder.path("data_index"));
  Indexed(folder);
  EXPECT_EQ(folder.Read(folder.index()), updated);  // as one that is made anew

  folder.Write("media/all.tar", folder.Read("media/all.tar") + std::string(512, '\0'));
  EXPECT_EQ(Indexed(folder)[0].shards_read, 2);  // those that refer to it
  folder.data.vocabulary = 101;
  EXPECT_EQ(Indexed(folder)[0].shards_read, 4);
}

TEST(Index, TheDigestDependsOnWhatIsInTheShardsAndOnNoPathAndNoTime) {
  DataFolder folder("index_digest"), moved("index_digest_moved");
  WriteBytesShards(folder);
  const std::string digest = Indexed(folder)[0].digest;
  for (const char* name : {"a.tar", "b.tar", "c.tar"}) moved.Write(std::string("deep/") + name, folder.Read(name));
  moved.data.sources[0].shards = {"deep/*.tar"};
  EXPECT_EQ(Indexed(moved)[0].digest, digest);
  std::string other = folder.Read("a.tar");
  other.replace(other.find("text alone"), 10, "text along");
  folder.Write("a.tar", other);
  EXPECT_NE(Indexed(folder)[0].digest, digest);
}

TEST(Index, RecipesThatShareAFolderKeepTheirOwn) {
  DataFolder folder("index_shared");
  folder.UseIds();
  WriteManyShards(folder, 4);
  Indexed(folder);
  const std::string path = folder.index(), bytes = folder.Read(path);
  folder.data.vocabulary = 101;
  EXPECT_EQ(Indexed(folder)[0].shards_read, 4);
  EXPECT_NE(folder.index(), path);
  EXPECT_EQ(folder.Read(path), bytes);
  for (int64_t vocabulary : {100, 101}) {
    folder.data.vocabulary = vocabulary;
    EXPECT_FALSE(Indexed(folder)[0].made);
    EXPECT_NE(Opened(folder), nullptr);
  }
}

TEST(Index, TakesShardsFromTheIndexOfAnotherRecipe) {
  DataFolder folder("index_other_recipe");
  folder.UseIds();
  WriteManyShards(folder, 4);
  folder.data.sources[0].shards = {"s-0.tar", "s-1.tar"};
  EXPECT_EQ(Indexed(folder)[0].shards_read, 2);
  // As it was called before names had digests.
  std::filesystem::rename(folder.index(), folder.path("data_index/captions.index"));
  folder.data.sources[0].shards = {"s-?.tar"};
  const IndexedSource more = Indexed(folder)[0];
  EXPECT_EQ(more.shards_read, 2);
  EXPECT_EQ(more.documents, 80);
  EXPECT_FALSE(Indexed(folder)[0].made);
  const std::string bytes = folder.Read(folder.index());
  std::filesystem::remove_all(folder.path("data_index"));
  Indexed(folder);
  EXPECT_EQ(folder.Read(folder.index()), bytes);
}

TEST(Index, TwoThatAreMadeAtOnceAreTheSame) {
  DataFolder folder("index_at_once");
  folder.UseIds();
  WriteManyShards(folder, 4);
  const std::string digest = Indexed(folder)[0].digest;
  std::filesystem::remove_all(folder.path("data_index"));
  std::vector<std::string> digests(4);
  {
    std::vector<std::jthread> makers;
    for (std::string& one : digests) makers.emplace_back([&] { one = Indexed(folder, 2)[0].digest; });
  }
  EXPECT_THAT(digests, ElementsAre(digest, digest, digest, digest));
}

TEST(Index, TellsHowFarItIs) {
  DataFolder folder("index_progress");
  folder.UseIds();
  WriteManyShards(folder, 3);
  IndexProgress last;
  int64_t told = 0;
  ASSERT_TRUE(UpdateIndex(folder.data, {.jobs = 2}, [&](const IndexProgress& progress) {
                EXPECT_GE(progress.bytes, last.bytes);
                EXPECT_GE(progress.documents, last.documents);
                last = progress;
                ++told;
              }).ok());
  EXPECT_GE(told, 3);
  EXPECT_EQ(last.shards, 3);
  EXPECT_EQ(last.all_shards, 3);
  EXPECT_EQ(last.documents, 60);
  EXPECT_EQ(last.bytes, last.all_bytes);
  ASSERT_TRUE(UpdateIndex(folder.data, {}, [&](const IndexProgress&) { FAIL() << "nothing is to be read"; }).ok());
}

TEST(Index, SkipsDamagedDocumentsAndListsThem) {
  DataFolder folder("index_skip");
  folder.data.damaged = "skip";
  folder.data.most_damaged = 2;
  std::string cut = PngOfSize(40, 40);
  cut.resize(cut.size() - 30);  // its header is whole
  folder.Write("a.tar", TarOf({{"one.txt", "1"}, {"two.png", cut}, {"three.txt", "<image>"}, {"four.txt", "4"}}));
  const IndexedSource made = Indexed(folder)[0];
  EXPECT_EQ(made.documents, 3);  // of the image the size is known, so its document is padding in its place
  EXPECT_EQ(std::pair(made.left_out, made.padded), std::pair(int64_t{2}, int64_t{1}));
  EXPECT_EQ(made.causes, (std::map<std::string, int64_t>{{"a damaged image", 1}, {"a damaged text, mask or list", 1}}));
  EXPECT_EQ(made.left_out_list, LeftOutPath(folder.data, folder.data.sources[0]));
  const std::string list = folder.Read(LeftOutPath(folder.data, folder.data.sources[0]));
  EXPECT_THAT(list, HasSubstr(folder.path("a.tar") + ": document two: its image two.png: "));
  EXPECT_THAT(
      list, HasSubstr(folder.path("a.tar") + ": document three: its text has 1 marks <image>, and it has 0 images\n"));
  const auto documents = Opened(folder);
  ASSERT_NE(documents, nullptr);
  EXPECT_EQ(documents->left_out(), 2);
  std::vector<PictureRef> pictures;
  documents->Pictures(1, pictures);
  EXPECT_TRUE(pictures.at(0).damaged);
  EXPECT_THAT(documents->ReadText(2)->tokens, ElementsAre('4', 258));
  EXPECT_EQ(Indexed(folder)[0].made, false);

  folder.data.most_damaged = 1;  // also of an index that is there
  const absl::Status too_many = UpdateIndex(folder.data, {}, {}).status();
  EXPECT_THAT(std::string(too_many.message()),
              HasSubstr("more than 1 documents are damaged (data.most_damaged); the first are:\n" +
                        folder.path("a.tar") + ": document two: "));
  std::filesystem::remove_all(folder.path("data_index"));
  EXPECT_EQ(UpdateIndex(folder.data, {}, {}).status().message(), too_many.message());
  EXPECT_FALSE(folder.Has(folder.index()));
  EXPECT_FALSE(OpenDocuments(folder.data, folder.data.sources[0]).ok());
}

TEST(Index, ListsTheFirstTwentyMistakesTheSameWithAnyNumberOfThreads) {
  DataFolder folder("index_mistakes");
  for (int shard = 0; shard < 9; ++shard) {
    Members members;
    for (int i = 0; i < 4; ++i) members.emplace_back("d" + std::to_string(i) + ".txt", i == 0 ? "ok" : "<image>");
    folder.Write("s-" + std::to_string(shard) + ".tar", TarOf(members));
  }
  folder.Write("s-3.tar", "no tar");
  std::string first;
  for (int jobs : {1, 2, 4, 4, 4}) {
    const absl::Status status = UpdateIndex(folder.data, {.jobs = jobs}, {}).status();
    const std::string message(status.message());
    if (first.empty()) first = message;
    EXPECT_EQ(message, first);
    EXPECT_THAT(message, HasSubstr(folder.path("s-3.tar") + ": at byte 0: the archive ends without its end mark\n"));
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 21);
    EXPECT_THAT(message, HasSubstr("s-6.tar: document d2: "));
    EXPECT_THAT(message, HasSubstr("\nthere may be more: these are the first\n"));
    EXPECT_FALSE(folder.Has(folder.index()));
  }
}

TEST(Index, RanksSayWhatToRun) {
  DataFolder folder("index_ranks");
  WriteBytesShards(folder);
  const auto message = [&] {
    return std::string(OpenDocuments(folder.data, folder.data.sources[0]).status().message());
  };
  const std::string path = folder.index(), run = ": run `plan data index` with the recipe";
  EXPECT_EQ(message(), "source captions: there is no index " + path + run);
  Indexed(folder);
  folder.data.sources[0].ignore = {"cls"};
  EXPECT_EQ(message(), "source captions: there is no index " + folder.index() + run);
  std::filesystem::copy_file(path, folder.index());
  EXPECT_EQ(message(),
            "source captions: the index " + folder.index() + " was made with other settings or shards" + run);
  folder.data.sources[0].ignore = {};
  folder.data.sources[0].shards = {"?.tar"};
  EXPECT_EQ(message(), "source captions: there is no index " + folder.index() + run);
  folder.data.sources[0].shards = {"*.tar"};
  const auto documents = Opened(folder);
  ASSERT_NE(documents, nullptr);
  const std::string shard = folder.Read("a.tar");
  folder.Write("a.tar", shard + "more");
  EXPECT_EQ(std::string(documents->ReadText(1).status().message()),
            folder.path("a.tar") + ": document two: " + folder.path("a.tar") + " has " +
                std::to_string(shard.size() + 4) + " bytes, and it had " + std::to_string(shard.size()) +
                " when the index was made: run `plan data index`");
  std::filesystem::remove(folder.path("c.tar"));
  EXPECT_EQ(
      std::string(documents->ReadPicture(3, 0).status().message()),
      folder.path("c.tar") + ": document four: cannot read " + folder.path("c.tar") + ": No such file or directory");
  EXPECT_THAT(documents->ReadText(3).status().message(), HasSubstr("No such file"));
}

TEST(Index, IsReadByManyThreadsWithFewOpenFiles) {
  DataFolder folder("index_threads");
  folder.UseIds();
  WriteManyShards(folder, 8);
  Indexed(folder);
  for (int i = 0; i < 100; ++i) folder.data.sources.push_back({.name = "s" + std::to_string(i)});  // 4 open files each
  const auto documents = Opened(folder);
  ASSERT_NE(documents, nullptr);
  std::vector<std::vector<int64_t>> expected;
  for (int64_t i = 0; i < documents->size(); ++i) expected.push_back(documents->ReadText(i)->tokens);
  std::vector<std::jthread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&, reader] {
      for (int64_t i = 0; i < documents->size(); ++i) {
        const int64_t number = (i * 37 + reader * 11) % documents->size();
        const absl::StatusOr<Documents::Text> text = documents->ReadText(number);
        ASSERT_TRUE(text.ok()) << text.status();
        EXPECT_EQ(text->tokens, expected[static_cast<size_t>(number)]);
      }
    });
  }
}

}  // namespace
}  // namespace planwright
