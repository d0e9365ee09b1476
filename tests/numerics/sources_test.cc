// A mixture of four sources trains the same curve on every layout, and goes on from a checkpoint at another layout
// (docs/training/data.md): packed documents with one or several images and masks, texts, and tokens of Megatron's
// files, in samples that are balanced or not. Real files, real processes over Gloo.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/data/samples/shard_files.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr double kFp64 = 1e-9;
constexpr int kSteps = 3, kResumed = 4;  // checkpoints after every second step
constexpr uint32_t kImage = 255, kPad = 254, kEnd = 253;

template <typename Number>
void Put(std::string& bytes, Number number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

// A sequence of ids that no rule of a model knows.
std::vector<uint32_t> Text(int document, int tokens) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < tokens; ++i) ids.push_back(static_cast<uint32_t>(document * 37 + i * i * 5 + i) % 250);
  return ids;
}

std::string Tok(const std::vector<uint32_t>& ids) {
  std::string bytes;
  for (uint32_t id : ids) Put(bytes, id);
  return bytes;
}

std::string Picture(int document, int width, int height) {
  std::vector<uint8_t> rgba(static_cast<size_t>(4 * width * height));
  for (size_t i = 0; i < rgba.size(); ++i)
    rgba[i] = static_cast<uint8_t>(i % 4 == 3 ? 255 : (i * static_cast<size_t>(document + 2)) / 3);
  return PngOf(width, height, rgba);
}

// An image, and a text of which the first half is not to be learnt.
std::string Pair(int i) {
  std::vector<uint32_t> ids = Text(i, 6 + i % 5);
  ids.insert(ids.begin() + 1, kImage);
  ids.push_back(kEnd);
  std::string mask(ids.size(), '\1');
  std::fill_n(mask.begin(), mask.size() / 2, '\0');
  const std::string name = "pair" + std::to_string(i);
  return TarMemberOf(name + ".tok", Tok(ids)) + TarMemberOf(name + ".mask", mask) +
         TarMemberOf(name + ".png", Picture(i, 8 + 4 * (i % 4), 24 - 4 * (i % 3)));
}

// Two or three images between texts.
std::string Album(int i) {
  std::string members;
  std::vector<uint32_t> ids;
  const std::string name = "album" + std::to_string(i);
  for (int image = 0; image < 2 + i % 2; ++image) {
    for (uint32_t id : Text(100 + 3 * i + image, 2 + i % 3)) ids.push_back(id);
    ids.push_back(kImage);
    members += TarMemberOf(name + "." + std::to_string(image) + ".png", Picture(i + image, 16, 8 + 8 * image));
  }
  ids.push_back(kEnd);
  return TarMemberOf(name + ".tok", Tok(ids)) + members;
}

std::string Shard(std::string (*document)(int), int first, int end) {
  std::string members;
  for (int i = first; i < end; ++i) members += document(i);
  return members + kTarEnd;
}

// Megatron's files: one sequence a document, of 16-bit ids.
void WriteTokens(const std::string& path, int documents) {
  std::string bin, lengths, pointers, ends;
  Put<int64_t>(ends, 0);
  for (int i = 0; i < documents; ++i) {
    std::vector<uint32_t> ids = Text(300 + i, 5 + 7 * (i % 9));  // the longest ones are longer than a sample
    ids.push_back(kEnd);
    Put(lengths, static_cast<int32_t>(ids.size()));
    Put(pointers, static_cast<int64_t>(bin.size()));
    for (uint32_t id : ids) Put(bin, static_cast<uint16_t>(id));
    Put<int64_t>(ends, i + 1);
  }
  std::string idx("MMIDIDX\0\0", 9);
  Put<uint64_t>(idx, 1);
  idx += '\x08';
  Put<uint64_t>(idx, static_cast<uint64_t>(documents));
  Put<uint64_t>(idx, static_cast<uint64_t>(documents + 1));
  std::ofstream(path + ".idx", std::ios::binary) << idx << lengths << pointers << ends;
  std::ofstream(path + ".bin", std::ios::binary) << bin;
}

constexpr char kData[] = R"(data:
  kind: sources
  seed: 7
  tokenizer: ids
  image_token: 255
  pad_token: 254
  end_token: 253
  sources:
    - {name: pairs, kind: webdataset, shards: ["pairs-{0..1}.tar"], weight: 2}
    - {name: albums, kind: webdataset, shards: ["alb*.tar"], weight: 1.5}
    - {name: talks, kind: webdataset, shards: [talks.tar], weight: 0.5}
    - {name: web, kind: tokens, path: web_text_document}
  min_patches: 4
  max_patches: 24
  window: 5
  long: cut
  packed_documents: true

evaluation:
  every_samples: 16
  sets:
    - name: held_out
      samples: 5
      sources:
        - {name: pairs, kind: webdataset, shards: [held_out.tar], weight: 2}
        - {name: albums, kind: webdataset, shards: [held_out_albums.tar]}
    - {name: talks, samples: 3, sources: [{name: talks, kind: webdataset, shards: [held_out_talks.tar]}]}

)";

class Sources : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_sources_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    const auto write = [&](const std::string& name, const std::string& contents) {
      std::ofstream(folder_ + "/" + name, std::ios::binary) << contents;
    };
    write("pairs-0.tar", Shard(Pair, 0, 7));
    write("pairs-1.tar", Shard(Pair, 7, 12));
    write("albums.tar", Shard(Album, 0, 9));
    std::string talks;
    for (int i = 0; i < 8; ++i) {
      std::vector<uint32_t> ids = Text(200 + i, 9 + i);
      ids.push_back(kEnd);
      talks += TarMemberOf("talk" + std::to_string(i) + ".tok", Tok(ids));
    }
    write("talks.tar", talks + kTarEnd);
    write("held_out.tar", Shard(Pair, 20, 29));
    write("held_out_albums.tar", Shard(Album, 20, 26));
    write("held_out_talks.tar", TarMemberOf("late.tok", Tok(Text(250, 30))) + kTarEnd);
    WriteTokens(folder_ + "/web_text_document", 20);
    std::stringstream recipe;
    recipe << std::ifstream(InSource(kTinyRecipe)).rdbuf();
    std::string text = recipe.str();
    const size_t data = text.find("data:\n"), lints = text.find("# Few tokens of mock");
    ASSERT_TRUE(data != std::string::npos && lints != std::string::npos);
    write("mixture.yaml", text.replace(data, lints - data, kData));
  }
  void TearDown() override { fs::remove_all(folder_); }

  TrainingRun Train(const std::string& balance, const std::vector<std::string>& layout, int steps,
                    const std::string& run_dir = "", const std::vector<std::string>& more = {}) const {
    return Launch({.recipe = folder_ + "/mixture.yaml",
                   .overrides = Join({"precision.params=fp64", "data.balance=" + balance}, layout, more),
                   .steps = steps,
                   .run_dir = run_dir});
  }

  std::string folder_;
};

std::vector<std::string> LayoutOf(const std::string& name) {
  for (const Layout& layout : AllLayouts()) {
    if (layout.name == name) return layout.overrides;
  }
  ADD_FAILURE() << "no layout " << name;
  return {};
}

// No rank of `plan evaluate` opens the files of the training, so none may wait for what they say.
TEST_F(Sources, ACheckpointIsEvaluatedAlone) {
  const TrainingRun run = Train("none", LayoutOf("dp2_dp2"), 2, folder_ + "/run", {"checkpoint.every_steps=2"});
  ASSERT_EQ(run.exit_code, 0) << run.output;
  ASSERT_EQ(run.evaluations.size(), 2U);
  std::string command = "timeout 120 '" + InBuild("bin/plan") + "' evaluate '" + folder_ + "/run' '" + folder_ +
                        "/mixture.yaml' precision.params=fp64 data.balance=none --json";
  for (const std::string& override : OneRankOnly()) command += " '" + override + "'";
  FILE* pipe = popen(command.c_str(), "r");
  std::string output(1 << 16, '\0');
  output.resize(fread(output.data(), 1, output.size(), pipe));
  ASSERT_EQ(pclose(pipe), 0) << output;
  const double found = nlohmann::json::parse(output).at("sets").at("held_out").at("loss");
  const double expected = run.evaluations[1].losses.at("held_out");
  EXPECT_NEAR(found, expected, kFp64 * expected);
}

TEST_F(Sources, TrainTheSameCurveOnEveryLayout) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases = {
      {"none", {"dp2_dp2", "cp2"}}, {"images", {"ep4", "pp2", "uneven", "colocated_4"}}};
  std::vector<TrainingRun> alone;
  for (const auto& [balance, layouts] : cases) {
    const TrainingRun one = Train(balance, OneRankOnly(), kSteps);
    ASSERT_EQ(one.exit_code, 0) << one.output;
    for (const std::string& name : layouts) {
      const TrainingRun run = Train(balance, LayoutOf(name), kSteps);
      ASSERT_EQ(run.exit_code, 0) << name << "\n" << run.output;
      const Comparison comparison = Compare(run, one, kFp64);
      EXPECT_THAT(comparison.differences, IsEmpty()) << name;
      EXPECT_FALSE(comparison.parted_at.has_value()) << name;
      EXPECT_THAT(CompareEvaluations(run, one, kFp64), IsEmpty()) << name;
      ASSERT_EQ(one.evaluations.size(), 2U) << "before the first step, and after the second";
      for (int step = 0; step < kSteps; ++step) {
        ASSERT_THAT(one.steps[step].source_loss, SizeIs(4));
        for (const auto& [source, loss] : one.steps[step].source_loss) {
          const double here = run.steps[step].source_loss.at(source);
          EXPECT_TRUE(std::isnan(loss) ? std::isnan(here) : std::abs(here - loss) <= kFp64 * loss) << name << source;
        }
      }
      std::printf("%-12s balance %-7s loss %.1e  gradients %.1e %.1e\n", name.c_str(), balance.c_str(),
                  comparison.worst_loss, comparison.worst_gradient_first, comparison.worst_gradient_last);
    }
    alone.push_back(one);
  }
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_NEAR(alone[0].steps[step].loss, alone[1].steps[step].loss, kFp64 * alone[0].steps[step].loss);
    EXPECT_NE(alone[0].steps[step].routing, alone[1].steps[step].routing) << "balance changes the order";
  }
}

TEST_F(Sources, GoOnAtAnotherLayout) {
  const std::vector<std::string> saved = {"checkpoint.every_steps=2"};
  const TrainingRun whole = Train("images", OneRankOnly(), kResumed, "", saved);
  ASSERT_EQ(whole.exit_code, 0) << whole.output;
  const std::string run_dir = folder_ + "/run";
  const TrainingRun first = Train("images", LayoutOf("dp2_dp2"), 2, run_dir, saved);
  ASSERT_EQ(first.exit_code, 0) << first.output;
  const TrainingRun second = Train("images", LayoutOf("colocated_4"), kResumed, run_dir, saved);
  ASSERT_EQ(second.exit_code, 0) << second.output;
  ASSERT_EQ(second.steps.size(), whole.steps.size());
  for (size_t i = 0; i < whole.steps.size(); ++i) {
    EXPECT_NEAR(second.steps[i].loss, whole.steps[i].loss, kFp64 * whole.steps[i].loss) << i;
    EXPECT_EQ(second.steps[i].routing, whole.steps[i].routing) << i;
  }
  ASSERT_THAT(whole.gradients_last, Not(IsEmpty()));
  for (const auto& [name, expected] : whole.gradients_last)
    EXPECT_LT(Distance(second.gradients_last.at(name), expected), kFp64) << name;
}

// The files of one node have other documents. The ranks say so before the first step.
TEST_F(Sources, ARankWithOtherFilesIsNamed) {
  const std::string other = folder_ + "/other";
  fs::create_directory(other);
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_)) {
    if (entry.is_regular_file()) fs::copy(entry.path(), other);
  }
  std::ofstream(other + "/albums.tar", std::ios::binary) << Shard(Album, 1, 10);
  const auto train = [](const std::string& folder, const std::vector<std::string>& layout,
                        const std::string& executor) {
    return Launch(
        {.recipe = folder + "/mixture.yaml", .overrides = layout, .steps = 1, .executor = executor, .probes = false});
  };
  ASSERT_EQ(train(other, OneRankOnly(), "").exit_code, 0) << "which makes the index";
  setenv("PLANWRIGHT_FAULT", ("other_files:" + other).c_str(), 1);
  const TrainingRun run = train(folder_, LayoutOf("dp2_dp2"), "faulty_executor");
  unsetenv("PLANWRIGHT_FAULT");
  EXPECT_EQ(run.exit_code, 14) << run.output;
  EXPECT_THAT(run.output, HasSubstr("on all ranks, but found rank 3 on "));
  EXPECT_THAT(run.output, HasSubstr("bring the same files to all nodes, and run `plan data index` again"));
  EXPECT_THAT(run.steps, IsEmpty());
}

}  // namespace
}  // namespace planwright::testing
