// A checkpoint that one layout saved and another one loads and saves again holds the same bits (docs/checkpoints.md).
// Real processes, real files; whole tensors are put together by gathered_checkpoint.h, which knows the files alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "tests/numerics/gathered_checkpoint.h"
#include "tests/numerics/layouts.h"
#include "tests/numerics/run.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::vector<std::string> kTraining = ReshardTraining();
const std::vector<std::string> kTrainedKeys = {"language.lm_head.weight",
                                               "language.backbone.layers.0.mixer.in_proj.weight",
                                               "radio_encoder.radio_model.model.blocks.0.attn.qkv.weight"};
constexpr int kTrained = 2;  // steps

class Reshard : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "planwright_reshard_XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The newest checkpoint of a run that was trained on this layout.
  GatheredCheckpoint Trained(const Layout& layout, const std::string& run_dir) const {
    return Saved(layout, run_dir, "", kTrained, "");
  }
  // Goes on with the run on this layout: one more step, which trains nothing, and is saved.
  GatheredCheckpoint SavedAgain(const Layout& layout, const std::string& run_dir, int steps) const {
    return Saved(layout, run_dir, "idle_executor", steps, "resuming after step " + std::to_string(steps - 1));
  }

  static std::string Newest(const std::string& run_dir) {
    std::string newest;
    for (const auto& entry : fs::directory_iterator(run_dir + "/checkpoints"))
      newest = std::max(newest, entry.path().string());
    return newest;
  }

  std::string folder_, precision_ = "bf16";
  std::vector<std::string> training_ = kTraining;

 private:
  GatheredCheckpoint Saved(const Layout& layout, const std::string& run_dir, const std::string& executor, int steps,
                           const std::string& says) const {
    // The plan of a rank that trains nothing lies in its checkpoints, and `plan` sees that it trains nothing.
    std::vector<std::string> options;
    if (!executor.empty()) options = {"--accept-changes"};
    const TrainingRun run = Launch({.recipe = layout.recipe,
                                    .overrides = Join({"precision.params=" + precision_}, training_, layout.overrides),
                                    .steps = steps,
                                    .executor = executor,
                                    .run_dir = run_dir,
                                    .options = options,
                                    .probes = false});
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_THAT(run.output, HasSubstr(says));
    const std::string newest = Newest(run_dir);
    GatheredCheckpoint gathered = GatherCheckpoint(newest);
    EXPECT_EQ(gathered.problem, "");
    EXPECT_EQ(gathered.counters["step"], steps) << newest;
    return gathered;
  }
};

// The checkpoint of a trained run says something: no moment of these is zero everywhere.
void ExpectTrained(const GatheredCheckpoint& checkpoint, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    for (const char* moment : {".exp_avg", ".exp_avg_sq"}) {
      const auto at = checkpoint.tensors.find(key + moment);
      ASSERT_NE(at, checkpoint.tensors.end()) << key << moment;
      EXPECT_NE(at->second.bytes.find_first_not_of('\0'), std::string::npos) << key << moment;
    }
  }
}

void ExpectSameBits(const GatheredCheckpoint& found, const GatheredCheckpoint& expected) {
  for (const auto& [key, tensor] : expected.tensors) {
    const auto at = found.tensors.find(key);
    ASSERT_NE(at, found.tensors.end()) << key << " is gone";
    EXPECT_TRUE(at->second == tensor) << key << " has other bits, or another type or shape";
  }
  EXPECT_EQ(found.tensors.size(), expected.tensors.size());
  for (const char* counter : {"applied_steps", "skipped_steps"})
    EXPECT_EQ(found.counters.at(counter), expected.counters.at(counter)) << counter;
}

// From each layout to the next, and from the last to the first: each saves once and loads once.
// What puts tensors together sees a changed bit, and an element that two shards or none have.
void ExpectJudgeSees(const std::string& checkpoint, const std::string& copy) {
  const GatheredCheckpoint whole = GatherCheckpoint(checkpoint);
  ASSERT_GT(whole.ranks, 1) << checkpoint;
  const auto with = [&](const std::string& file, const std::function<void(std::string&)>& change) {
    fs::copy(checkpoint, copy);
    std::string text = ReadWholeFile(copy + "/" + file, SIZE_MAX).value_or("");
    change(text);
    std::ofstream(copy + "/" + file, std::ios::binary) << text;
    GatheredCheckpoint gathered = GatherCheckpoint(copy);
    fs::remove_all(copy);
    return gathered;
  };
  const GatheredCheckpoint flipped = with("rank-00001.safetensors", [](std::string& text) { text.back() ^= 1; });
  EXPECT_EQ(flipped.problem, "");
  EXPECT_NE(flipped.tensors, whole.tensors);
  const auto replace_shard = [](std::string& manifest) {  // that of rank 1 by that of rank 0
    const size_t at = manifest.find("\"rank\": 1,");
    ASSERT_NE(at, std::string::npos);
    manifest[at + 8] = '0';
  };
  EXPECT_THAT(with("manifest.json", replace_shard).problem, HasSubstr("two shards have an element of"));
  const auto drop_shard = [](std::string& manifest) {
    nlohmann::json json = nlohmann::json::parse(manifest);
    json["shards"].erase(1);
    manifest = json.dump();
  };
  EXPECT_THAT(with("manifest.json", drop_shard).problem, HasSubstr("no shard has"));
}

class Round : public Reshard, public ::testing::WithParamInterface<const char*> {};

TEST_P(Round, KeepsEveryBit) {
  precision_ = GetParam();
  const std::vector<Layout> layouts = ReshardLayouts();
  const std::string run_dir = folder_ + "/run";
  const GatheredCheckpoint first = Trained(layouts[0], run_dir);
  ExpectTrained(first, kTrainedKeys);
  for (size_t i = 1; i <= layouts.size() && !HasFailure(); ++i) {
    const Layout& layout = layouts[i % layouts.size()];
    SCOPED_TRACE("from " + layouts[i - 1].name + " to " + layout.name);
    ExpectSameBits(SavedAgain(layout, run_dir, kTrained + static_cast<int>(i)), first);
    if (i == 1) ExpectJudgeSees(Newest(run_dir), folder_ + "/changed");
  }
}
const auto kPrecision = [](const auto& info) { return std::string(info.param); };
INSTANTIATE_TEST_SUITE_P(Some, Round, ::testing::Values("bf16"), kPrecision);
INSTANTIATE_TEST_SUITE_P(Soak, Round, ::testing::Values("fp32", "fp64"), kPrecision);

// A decoder with gated experts: on 4 tp ranks the 2 key heads lie whole on each, and gates and up are cut apart.
TEST_F(Reshard, ADecoderKeepsEveryBit) {
  training_ = {"models.decoder_tiny.vocabulary=259", "models.decoder_tiny.attention.biases=all",
               "checkpoint.every_steps=2"};
  const auto text = [](const char* name, int ranks, std::vector<AxisSize> axes, std::vector<std::string> more = {}) {
    return Layout{name,
                  Join(LanguageOn(0, ranks, 1, 1), Parallel("language", axes), more),
                  {},
                  "recipes/qwen3_moe_tiny.yaml",
                  {}};
  };
  const std::vector<Layout> layouts = {
      text("tp4_ep4", 4, {{"tp", 4}, {"ep", 4}}),
      text("pp2_cp2_ep2", 4, {{"pp", 2}, {"cp", 2}, {"ep", 2}}, {"gradients.buckets=8"}),
      text("tp2_expert_tp2_ep2", 4, {{"tp", 2}, {"expert_tp", 2}, {"ep", 2}}),
      text("uneven_stages", 2, {{"pp", 2}}, {"modules.language.parallel.stage_layers=[3, 1]"}),
  };
  const std::string run_dir = folder_ + "/run";
  const GatheredCheckpoint first = Trained(layouts[0], run_dir);
  ExpectTrained(first, {"language.model.embed_tokens.weight", "language.model.layers.0.self_attn.k_norm.weight",
                        "language.model.layers.1.self_attn.k_proj.bias", "language.model.layers.1.mlp.up_proj.weight"});
  for (size_t i = 1; i <= layouts.size() && !HasFailure(); ++i) {
    const Layout& layout = layouts[i % layouts.size()];
    SCOPED_TRACE("to " + layout.name);
    ExpectSameBits(SavedAgain(layout, run_dir, kTrained + static_cast<int>(i)), first);
  }
}

// All pairs: what each layout has trained is loaded by each.
class Matrix : public Reshard, public ::testing::WithParamInterface<Layout> {};

TEST_P(Matrix, IsLoadedByEveryLayout) {
  const std::string trained = folder_ + "/trained", run_dir = folder_ + "/run";
  const GatheredCheckpoint source = Trained(GetParam(), trained);
  ExpectTrained(source, kTrainedKeys);
  for (const Layout& target : ReshardLayouts()) {
    SCOPED_TRACE("to " + target.name);
    fs::copy(trained, run_dir, fs::copy_options::recursive);
    ExpectSameBits(SavedAgain(target, run_dir, kTrained + 1), source);
    fs::remove_all(run_dir);
  }
}
INSTANTIATE_TEST_SUITE_P(Soak, Matrix, ::testing::ValuesIn(ReshardLayouts()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::testing
