// The shipped profiles beside runs on the same cards. The tables stand in docs/measure.md#how-far-off, as they are.
// `tests/gpu/measure --parts profile`, and `--parts profile_2g,held_out`, make profiles and runs again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/base/files/file_io.h"
#include "planner/predict/estimate/step_time.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/older_passes.h"

namespace planwright {
namespace {

using Words = std::vector<std::string>;

struct MeasuredRun {
  const char* what;
  double measured;  // milliseconds of a step: the median of steps 6 to 12
  std::string recipe;
  Words overrides;
};

Words Samples(int samples) {
  return {absl::StrCat("batch.global_samples=", samples), absl::StrCat("budget.train_samples=", samples * 50),
          absl::StrCat("budget.learning_rate.decay_samples=", samples * 50)};
}

std::string Experts(int experts) { return absl::StrCat("models.nemotron_hybrid_moe_20l.moe.experts=", experts); }

Words With(std::initializer_list<Words> lists) {
  Words all;
  for (const Words& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// What the recipes of two GPUs need on one.
Words ImagesOnOneGpu() {
  return {"cluster.gpus_per_node=1",
          "modules.radio_encoder.placement.ranks=1",
          "modules.language.placement.ranks=1",
          "modules.language.parallel.ep=1",
          "modules.language.parallel.overlap_dispatch=false",
          "gradients.overlap_reduce=false",
          "gradients.overlap_gather=false",
          "gradients.buckets=1"};
}

// Runs of the recipe of text with 16 experts on one GPU, `words`, and how long each took.
std::vector<MeasuredRun> RunsOfText(const Words& words, const std::array<double, 7>& took) {
  const std::string recipe = "nemotron_moe_lm_20l_1g.yaml";
  return {{"text, 4 microbatches", took[0], recipe, words},
          {"samples of 6,144 tokens", took[1], recipe,
           With({words, {"batch.sequence_length=6144", "data.text_tokens=6144"}})},
          {"12 experts", took[2], recipe, With({words, {Experts(12)}})},
          {"recompute: full", took[3], recipe, With({words, {"modules.language.recompute=full"}})},
          {"recompute: elementwise", took[4], recipe, With({words, {"modules.language.recompute=elementwise"}})},
          {"2 samples a microbatch", took[5], recipe, With({words, {"batch.micro_samples=2"}})},
          {"8 microbatches", took[6], recipe, With({words, Samples(8)})}};
}

enum class Steps { kAsNow, kOlder };  // kOlder: with the passes of tests/support/older_passes.h

// The rows of the table in docs/measure.md, and how far each prediction is off.
std::string TableOf(const std::string& profile, Steps steps, const std::vector<MeasuredRun>& runs,
                    std::vector<double>& off) {
  std::string table;
  for (const MeasuredRun& run : runs) {
    const Words words = With({run.overrides, {"cluster.profile=" + InSource("recipes/profiles/" + profile)}});
    const Plan plan = testing::CompiledFile(InSource("recipes/" + run.recipe), words);
    const double seconds = steps == Steps::kOlder ? testing::OlderStep(plan) : TimeStep(plan).length,
                 predicted = seconds * 1e3, share = predicted / run.measured - 1;
    off.push_back(std::abs(share));
    absl::StrAppendFormat(&table, "| %s | %.1f ms | %.1f ms | %+.1f %% |\n", run.what, predicted, run.measured,
                          share * 100);
  }
  std::sort(off.begin(), off.end());
  return table;
}

void ExpectInDocs(const std::string& table) {
  EXPECT_THAT(ReadWholeFile(InSource("docs/measure.md"), int64_t{1} << 20).value(), ::testing::HasSubstr(table))
      << table;
}

TEST(MeasuredProfile, OfOneGpuPredictsRunsThatItDoesNotHave) {
  std::vector<MeasuredRun> runs = RunsOfText(With({{Experts(16), "cluster.gpu=h100_sxm"}, Samples(4)}),
                                             {623.7, 473.2, 616.4, 748.6, 631.8, 610.9, 1217.9});
  runs.push_back({"images, 4 microbatches, 8 experts, recompute of the encoder: elementwise", 1439.2,
                  "nemotron_moe_vlm_20l_2g.yaml",
                  With({{Experts(8), "modules.language.recompute=none", "models.radio_vit_h.positions=interpolate",
                         "cluster.gpu=h100_sxm"},
                        ImagesOnOneGpu(),
                        Samples(4)})});
  std::vector<double> off;
  const std::string table = TableOf("h100_sxm.json", Steps::kOlder, runs, off);
  EXPECT_LE(off[off.size() / 2], 0.03);
  EXPECT_LE(off.back(), 0.08);
  ExpectInDocs(table);
}

TEST(MeasuredProfile, OfTwoGpusPredictsRunsThatItDoesNotHave) {
  const std::string text = "nemotron_moe_vlm_20l_2g_text_only.yaml", learning = "nemotron_moe_vlm_20l_2g.yaml",
                    frozen = "nemotron_moe_vlm_20l_2g_frozen.yaml";
  const Words blocks = {"modules.radio_encoder.recompute=block", "modules.language.recompute=mamba"};
  std::vector<double> off;
  const std::string table = TableOf(
      "h200_sxm.json", Steps::kAsNow,
      {{"text, 8 microbatches", 1419.4, text, Samples(16)},
       {"16 microbatches", 2790.3, text, Samples(32)},
       {"64 experts", 1354.3, text, With({Samples(16), {Experts(64)}})},
       {"samples of 4,096 tokens", 793.7, text,
        With({Samples(16), {"batch.sequence_length=4096", "data.text_tokens=4096"}})},
       {"2 samples a microbatch, 32 experts", 1295.7, text,
        With({Samples(16), {"batch.micro_samples=2", Experts(32)}})},
       {"4 microbatches, recompute: full", 884.5, text, With({Samples(8), {"modules.language.recompute=full"}})},
       {"4 microbatches, all of 32 experts on each GPU", 626.2, text,
        With({Samples(8),
              {Experts(32), "modules.language.parallel.ep=1", "modules.language.parallel.overlap_dispatch=false"}})},
       {"images, frozen encoder, 8 microbatches", 1875.7, frozen, Samples(16)},
       {"4 microbatches", 959.8, frozen, Samples(8)},
       {"images, encoder that learns, recompute of its blocks, 4 microbatches", 1675.2, learning,
        With({Samples(8), blocks})},
       {"the same, 8 layers in the encoder", 1021.2, learning,
        With({Samples(8), blocks, {"models.radio_vit_h.layers=8"}})},
       {"as the recipe is, 8 microbatches", 2997.6, learning, Samples(16)}},
      off);
  EXPECT_LE(off[off.size() / 2], 0.03);
  EXPECT_LE(off.back(), 0.08);
  ExpectInDocs(table);
}

// A third GPU of their host.
TEST(MeasuredProfile, OfTwoGpusPredictsAnother) {
  const std::string learning = "nemotron_moe_vlm_20l_2g.yaml", frozen = "nemotron_moe_vlm_20l_2g_frozen.yaml";
  const Words of_images = With({{Experts(16)}, ImagesOnOneGpu()}),
              blocks = {"modules.radio_encoder.recompute=block", "modules.language.recompute=mamba"};
  std::vector<MeasuredRun> runs =
      RunsOfText(With({{Experts(16)}, Samples(4)}), {592.4, 445.8, 586.9, 715.0, 599.7, 581.8, 1166.5});
  const std::vector<MeasuredRun> images = {
      {"images, encoder that learns, recompute of its blocks, 2 microbatches", 769.7, learning,
       With({of_images, blocks, Samples(2)})},
      {"4 microbatches", 1513.0, learning, With({of_images, blocks, Samples(4)})},
      {"frozen encoder, 4 microbatches", 808.0, frozen, With({of_images, Samples(4)})},
      {"encoder that learns, 8 experts, no recompute of blocks", 1349.0, learning,
       With({of_images, Samples(4), {"modules.language.recompute=mamba", Experts(8)}})},
      {"8 layers in the encoder, recompute of its blocks", 867.0, learning,
       With({of_images, blocks, Samples(4), {"models.radio_vit_h.layers=8"}})}};
  runs.insert(runs.end(), images.begin(), images.end());
  std::vector<double> off;
  const std::string table = TableOf("h200_sxm.json", Steps::kAsNow, runs, off);
  EXPECT_LE(off[off.size() / 2], 0.03);
  EXPECT_LE(off.back(), 0.08);
  ExpectInDocs(table);
}

}  // namespace
}  // namespace planwright
