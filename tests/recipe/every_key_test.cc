// No key is accepted and then ignored: a recipe with every key of the table, each with another value than its default,
// is read completely.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"
#include "planner/base/text/near_name.h"
#include "planner/recipe/recipe_keys.h"
#include "planner/recipe/recipe_tree.h"
#include "tests/recipe/temp_recipes.h"

namespace planwright {
namespace {

constexpr char kEveryKey[] = R"(name: every
cluster: {nodes: 2, gpus_per_node: 4, gpu: h100_sxm, host_memory: 750.5, profile: h100.json,
          device: {memory: 79.5, peak: 800.5, bandwidth: 3000.5, link: 400.5, network: 40.5}}
models:
  vit:
    {kind: radio_vit, layers: 3, hidden: 36, heads: 6, ffn: 72, patch: 8, class_tokens: 5, max_image: 96,
     pixel_shuffle: 3, positions: crop, norm_eps: 2.0e-6, init_std: 0.03,
     projector: {hidden: 77, norm_eps: 3.0e-5}, activation: gelu, final_norm: none}
  lm:
    kind: hybrid_lm
    pattern: "M*E"
    hidden: 48
    vocabulary: 300
    init_std: 0.04
    norm_eps: 4.0e-5
    attention: {heads: 6, head_dim: 9, kv_groups: 3}
    mamba: {heads: 10, head_dim: 11, groups: 5, state: 12, conv: 3, chunk: 13}
    moe: {experts: 14, top_k: 4, ffn: 15, shared_ffn: 16, normalized: false, scale: 1.5, aux_loss: 0.25,
          bias_rate: 0.125, imbalance: 3.5}
    mlp: {ffn: 17}
modules:
  eyes: {model: vit, placement: {first_rank: 0, ranks: 2}, parallel: {tp: 2},
         train: {backbone: trained, projection: trained}, recompute: [block]}
  mouth: {model: lm, placement: {first_rank: 2, ranks: 6}, parallel: {tp: 3, cp: 4, pp: 5, dp: 6, ep: 7, expert_tp: 8,
          dispatch: all_gather, overlap_dispatch: true, stage_layers: [1, 2]}}
bridges: [{from: eyes, to: mouth, token: 201, max_mean_square: 50.0}]
batch: {global_samples: 24, micro_samples: 2, sequence_length: 99}
budget:
  train_samples: 1000
  learning_rate: {peak: 0.05, min: 0.01, init: 0.02, warmup_samples: 30, decay_samples: 900, style: wsd,
                  wsd: {decay_samples: 100, style: cosine}}
  weight_decay: {start: 0.1, end: 0.2, style: linear}
optimizer: {betas: [0.7, 0.8], eps: 1.0e-7, clip_grad_norm: 2.5,
            parts: [{match: eyes.projection, learning_rate: 0.06, weight_decay: 0.3}]}
gradients: {overlap_reduce: false, overlap_gather: false, buckets: 6}
precision: {params: fp64, deterministic: true}
data: {kind: mock, seed: 77, image_token: 200, packed_documents: true, balance: images,
       image_grids: [[3, 6], [9, 3]], min_images: 1, max_images: 2, classes: 5, text_tokens: 6}
initialize: {from: runs/before, ignore: [a, b], optimizer: true, schedule: checkpoint}
evaluation: {every_samples: 1056, sets: [{name: held, samples: 11, seed: 78}]}
divergence: {window: 45, factor: 2.5}
checkpoint: {every_steps: 44, keep_last: 3, keep_every_steps: 440, keep_best: held}
log: {every_steps: 9}
launch: {interface: ib7, restarts: 4, deadline: {floor: 61.0, first_step: 62.0, factor: 6.5}, fallbacks: [less.yaml],
         env: [NCCL_DEBUG=INFO, HF_TOKEN], setup: [module load cuda, ulimit -l unlimited],
         slurm: {partition: long, account: team, qos: high, constraint: gpu, reservation: big, time: "2:00:00",
                 gres: "gpu:h100:4", cpus_per_task: 96, container: /image.sqsh, mounts: ["/a:/b"],
                 options: [--exclude=n17]}}
lints: {PW0407: error, PW0605: off}
)";

// Adds all paths of the tree, as the table of keys has them: "modules.<name>.parallel.tp".
void CollectPaths(const YamlNode& node, const std::string& path, std::set<std::string>& found) {
  for (const YamlEntry& entry : node.entries) {
    for (const KeySpec& spec : RecipeKeys()) {
      const std::string full = path.empty() ? entry.key : path + "." + entry.key;
      if (spec.path != full) continue;
      found.insert(full);
      if (spec.type == KeyType::kMap) CollectPaths(entry.value, full, found);
      if (spec.type == KeyType::kNamedMaps) {
        for (const YamlEntry& named : entry.value.entries) CollectPaths(named.value, full + ".<name>", found);
      }
      for (const YamlNode& item : entry.value.items) CollectPaths(item, full + "[]", found);
    }
  }
}

TEST(EveryKey, OfTheTableIsInTheseTests) {
  TempRecipes files;
  Diagnostics problems;
  std::set<std::string> found = {"extends"};  // extends_test
  const std::vector<std::vector<std::string>> variants = {
      {},
      {"data={kind: recorded, path: x}"},
      {"data={kind: sources, sources: [{name: a, kind: webdataset, weight: 2, shards: [x], ignore: json}, "
       "{kind: tokens, path: y}], tokenizer: ids, tokenizer_digest: x, template_digest: y, pad_token: 1, end_token: 2, "
       "shuffle: none, packing: none, window: 1, long: cut, damaged: skip, most_damaged: 1, min_patches: 1, "
       "max_patches: 2, resize: bicubic, grid: ceil, orientation: exif, index: x}"},
      {"evaluation={every_samples: 24, sets: [{name: a, samples: 1, path: x}, "
       "{name: c, samples: 1, sources: [{name: a, kind: webdataset, weight: 2, shards: [x], ignore: json}, "
       "{kind: tokens, path: y}]}]}"},
      {"budget.learning_rate={warmup_fraction: 0.5}"},
      {"models.decoder={kind: decoder, layers: 2, hidden: 40, vocabulary: 301, init_std: 0.05, norm_eps: 5.0e-5, "
       "tied: true, attention: {heads: 8, head_dim: 10, kv_groups: 4, biases: qkv, normed: true}, "
       "rope: {theta: 500.5, features: 6, scaling: yarn, factor: 2.5, original: 64, low: 1.5, high: 30.5, amplitude: "
       "1.25, height: 1, width: 2}, mlp: {ffn: 18}}"},
      {"models.qwen={kind: qwen_vit, layers: 2, hidden: 48, heads: 6, ffn: 70, patch: 8, frames: 3, table: 7, "
       "max_image: 96, pixel_shuffle: 3, activation: gelu, rope_theta: 500.5, norm_eps: 2.0e-6, init_std: 0.03}"},
      {"models.siglip={kind: siglip_vit, layers: 2, hidden: 48, heads: 6, ffn: 70, patch: 8, max_image: 100, table: 7, "
       "pixel_shuffle: 3, positions: resized, activation: gelu, final_norm: none, norm_eps: 2.0e-6, init_std: 0.03, "
       "projector: {hidden: 90}}"},
      {"models.decoder={kind: decoder, pattern: '*-*E', moe: {experts: 15, top_k: 3, ffn: 19, normalized: false, "
       "aux_loss: 0.5, imbalance: 4.5}}"},
      {"modules.mouth.parallel={first_stage_layers: 3, last_stage_layers: 4}"},
      {"modules.mouth.adapter={rank: 3, alpha: 5.5, targets: [q_proj]}"},
      {"initialize={sources: [{for: eyes, from: drawn}, {for: mouth, from: x}]}"}};
  for (const auto& overrides : variants) {
    const std::optional<YamlNode> tree = ReadRecipeTree(files.Write("r.yaml", kEveryKey), overrides, problems);
    ASSERT_TRUE(tree);
    CollectPaths(*tree, "", found);
  }
  for (const KeySpec& spec : RecipeKeys()) {
    EXPECT_TRUE(found.contains(std::string(spec.path))) << spec.path;
  }
}

// The keys without a field: the reader uses them in another way.
TEST(EveryKey, GoesIntoAFieldOrIsKnownNotTo) {
  const std::set<std::string_view> without = {"extends", "lints"};
  for (const KeySpec& spec : RecipeKeys()) {
    const bool maps =
        spec.type == KeyType::kMap || spec.type == KeyType::kNamedMaps || spec.type == KeyType::kListOfMaps;
    EXPECT_EQ(spec.target.owner == nullptr && !maps, without.contains(spec.path)) << spec.path;
  }
}

// A key with one legal value says nothing. Of several kinds, one has more than one
// (docs/decisions/0014-what-the-plan-and-the-recipe-keep.md).
TEST(EveryKey, HasASecondValue) {
  std::map<std::string_view, size_t> most;
  for (const KeySpec& spec : RecipeKeys()) {
    // A word may have numbers beside it.
    const size_t numbers = spec.type == KeyType::kWordOrCount ? 1 : 0;
    if (!spec.choices.empty()) most[spec.path] = std::max(most[spec.path], ChoicesOf(spec).size() + numbers);
  }
  for (const auto& [path, values] : most) EXPECT_GT(values, 1U) << path;
}

// A number without two ends leads to numbers that are infinite, or that 64 bits do not hold.
TEST(EveryKey, ThatIsANumberHasTwoEnds) {
  int numbers = 0;
  for (const KeySpec& spec : RecipeKeys()) {
    const bool number = spec.type == KeyType::kInteger || spec.type == KeyType::kNumber ||
                        spec.type == KeyType::kNumberPair || spec.type == KeyType::kIntegers ||
                        spec.type == KeyType::kIntegerPairs || spec.type == KeyType::kWordOrCount;
    EXPECT_EQ(!spec.range.any(), number) << spec.path;
    numbers += number ? 1 : 0;
    if (!number) continue;
    EXPECT_LT(spec.range.low, spec.range.high) << spec.path;
    // What is published, and what the reader says: a value at an end is inside, one beyond it is not.
    for (const auto& [end, open, beyond] : {std::tuple(spec.range.low, spec.range.above, -HUGE_VAL),
                                            std::tuple(spec.range.high, spec.range.below, HUGE_VAL)}) {
      EXPECT_EQ(spec.range.Holds(end), !open) << spec.path << " " << end;
      EXPECT_FALSE(spec.range.Holds(std::nextafter(end, beyond))) << spec.path << " " << end;
      EXPECT_FALSE(BrokenEnd(spec.range, std::nextafter(end, beyond)).empty()) << spec.path;
      EXPECT_FALSE(spec.range.Holds(beyond)) << spec.path;
    }
    EXPECT_FALSE(spec.range.Holds(std::nan(""))) << spec.path;
    if (!spec.default_text.empty() && spec.type == KeyType::kNumber) {
      EXPECT_TRUE(spec.range.Holds(std::stod(std::string(spec.default_text)))) << spec.path;
    }
  }
  EXPECT_GT(numbers, 80);
}

TEST(Ranges, AreWrittenAsARecipeWritesNumbers) {
  EXPECT_EQ(RangeText({1, 16777216}), "1 to 16777216");
  EXPECT_EQ(RangeText({1e-30, 1}), "1e-30 to 1");
  EXPECT_EQ(RangeText({0.001, 1e30}), "0.001 to 1e30");
  EXPECT_EQ(RangeText({1e-6, 1e9}), "1e-6 to 1e9");
  EXPECT_EQ(RangeText({0, 1e6}), "0 to 1000000");
  EXPECT_EQ(RangeText({0, 9007199254740991}), "0 to 9007199254740991");
  EXPECT_EQ(RangeText(kBelowOne), "at least 0, below 1");
  EXPECT_EQ(RangeText({.low = 1, .high = 1e9, .above = true}), "above 1, at most 1000000000");
  EXPECT_EQ(RangeText(kAnyNumber), "");
  EXPECT_EQ(BrokenEnd({1e-30, 1}, 0), "at least 1e-30");
  EXPECT_EQ(BrokenEnd({1e-30, 1}, 2), "at most 1");
  EXPECT_EQ(BrokenEnd(kBelowOne, 1), "below 1");
  EXPECT_EQ(NearestInside({1, 8}, 9), 8);
  EXPECT_EQ(NearestInside({1, 8}, 0), 1);
  EXPECT_EQ(NearestInside(kBelowOne, 1), std::nullopt);
}

// Recipes that were written for an earlier version.
TEST(EveryKey, ThatIsGoneSaysWhatHoldsWithoutIt) {
  TempRecipes files;
  ASSERT_EQ(GoneKeys().size(), 5U);
  for (const GoneKey& gone : GoneKeys()) {
    for (const KeySpec& spec : RecipeKeys()) EXPECT_NE(gone.path, spec.path);
    if (!gone.now.empty()) continue;  // data_kinds_test.cc
    std::string path(gone.path);
    if (const size_t at = path.find("<name>"); at != std::string::npos) path.replace(at, 6, "vit");
    Diagnostics problems;
    ReadRecipe(files.Write("r.yaml", kEveryKey), {path + "=old"}, problems);
    ASSERT_EQ(problems.as_found().size(), 1U) << path;
    const Diagnostic& problem = problems.as_found().front();
    EXPECT_EQ(problem.kind, DiagnosticKind::kUnknownKey);
    EXPECT_EQ(problem.help, gone.help);
    EXPECT_TRUE(problem.help.starts_with("delete it: ")) << problem.help;
    EXPECT_TRUE(problem.where.known());
  }
}

// "heads 6, init_std 0.03 real", by name.
std::string NumbersText(const ModelRecipe& model) {
  return absl::StrJoin(model.numbers, ", ", [](std::string* out, const auto& entry) {
    const double* real = std::get_if<double>(&*entry.second);
    absl::StrAppend(out, entry.first, " ");
    real ? absl::StrAppend(out, *real, " real") : absl::StrAppend(out, std::get<int64_t>(*entry.second));
  });
}

TEST(EveryKey, ModelsArriveWhole) {
  TempRecipes files;
  const Recipe r = MustRead(files.Write("r.yaml", kEveryKey));
  const ModelRecipe &vit = r.modules.at(0).model, &lm = r.modules.at(1).model;
  EXPECT_EQ(*vit.pattern, "VVV");
  EXPECT_EQ(vit.pattern.where.line, 6);
  EXPECT_EQ(NumbersText(vit),
            "class_tokens 5, crop 1, erf_gelu 1, ffn 72, final_norm 0, heads 6, hidden 36, init_std 0.03 real, "
            "max_image 96, norm_eps 2e-06 real, patch 8, pixel_shuffle 3, projector.hidden 77, "
            "projector.norm_eps 3e-05 real");
  EXPECT_EQ(*lm.pattern, "M*E");
  EXPECT_EQ(lm.sections, (std::set<std::string, std::less<>>{"attention", "mamba", "mlp", "moe"}));
  EXPECT_EQ(NumbersText(lm),
            "attention.head_dim 9, attention.heads 6, attention.kv_groups 3, hidden 48, init_std 0.04 real, "
            "mamba.chunk 13, mamba.conv 3, mamba.groups 5, mamba.head_dim 11, mamba.heads 10, mamba.state 12, "
            "mlp.ffn 17, moe.aux_loss 0.25 real, moe.bias_rate 0.125 real, moe.experts 14, moe.ffn 15, "
            "moe.imbalance 3.5 real, moe.normalized 0, moe.scale 1.5 real, moe.shared_ffn 16, moe.top_k 4, "
            "norm_eps 4e-05 real, vocabulary 300");
  for (const ModelRecipe* model : {&vit, &lm}) {
    for (const auto& [name, number] : model->numbers) EXPECT_TRUE(number.where.known()) << name;
  }
}

TEST(EveryKey, ADecoderArrivesWhole) {
  TempRecipes files;
  const std::string decoder =
      "models.dec={kind: decoder, pattern: '*E*-', hidden: 40, vocabulary: 320, init_std: 0.05, norm_eps: 5.0e-5, "
      "tied: "
      "true, attention: {heads: 8, head_dim: 10, kv_groups: 4, biases: qkv, normed: true}, rope: {theta: 500.5, "
      "features: 6, scaling: yarn, factor: 3.5, original: 77, low: 2.5, high: 33.5, amplitude: 1.25, height: 1, width: "
      "2}, moe: {experts: "
      "18, top_k: 5, ffn: 19, normalized: true, aux_loss: 0.75, imbalance: 4.5}, mlp: {ffn: 21}}";
  const ModelRecipe dec =
      MustRead(files.Write("r.yaml", kEveryKey), {decoder, "modules.mouth.model=dec"}).modules.at(1).model;
  EXPECT_EQ(*dec.pattern, "*E*-");
  EXPECT_EQ(dec.sections, (std::set<std::string, std::less<>>{"attention", "mlp", "moe", "rope"}));
  EXPECT_EQ(NumbersText(dec),
            "attention.biases 1, attention.head_dim 10, attention.heads 8, attention.kv_groups 4, attention.normed 1, "
            "hidden 40, init_std 0.05 real, mlp.ffn 21, moe.aux_loss 0.75 real, moe.experts 18, moe.ffn 19, "
            "moe.imbalance 4.5 real, moe.normalized 1, moe.top_k 5, norm_eps 5e-05 real, rope.amplitude 1.25 real, "
            "rope.factor 3.5 real, rope.features 6, rope.height 1, rope.high 33.5 real, rope.low 2.5 real, "
            "rope.original 77, rope.scaling 3, rope.theta 500.5 real, rope.width 2, tied 1, vocabulary 320");
}

TEST(EveryKey, AnEncoderOfQwenArrivesWhole) {
  TempRecipes files;
  const std::string encoder =
      "models.qwen={kind: qwen_vit, layers: 2, hidden: 48, heads: 6, ffn: 70, patch: 8, frames: 3, table: 7, "
      "max_image: 96, pixel_shuffle: 3, activation: gelu, rope_theta: 500.5, norm_eps: 2.0e-6, init_std: 0.03}";
  const ModelRecipe qwen =
      MustRead(files.Write("r.yaml", kEveryKey), {encoder, "modules.eyes.model=qwen"}).modules.at(0).model;
  EXPECT_EQ(*qwen.pattern, "VV");
  EXPECT_EQ(NumbersText(qwen),
            "erf_gelu 1, ffn 70, frames 3, heads 6, hidden 48, init_std 0.03 real, max_image 96, norm_eps 2e-06 real, "
            "patch 8, pixel_shuffle 3, rope_theta 500.5 real, table 7");
}

TEST(EveryKey, AnEncoderOfSiglipArrivesWhole) {
  TempRecipes files;
  const std::string encoder =
      "models.siglip={kind: siglip_vit, layers: 2, hidden: 48, heads: 6, ffn: 70, patch: 8, max_image: 100, table: 7, "
      "pixel_shuffle: 3, positions: resized, activation: gelu, final_norm: none, norm_eps: 2.0e-6, init_std: 0.03, "
      "projector: {hidden: 90}}";
  const ModelRecipe siglip =
      MustRead(files.Write("r.yaml", kEveryKey), {encoder, "modules.eyes.model=siglip"}).modules.at(0).model;
  EXPECT_EQ(*siglip.pattern, "VV");
  EXPECT_EQ(NumbersText(siglip),
            "erf_gelu 1, ffn 70, final_norm 0, fixed_positions 0, heads 6, hidden 48, init_std 0.03 real, max_image "
            "100, norm_eps 2e-06 real, patch 8, pixel_shuffle 3, projector.hidden 90, table 7");
}

TEST(EveryKey, ModulesArriveWhole) {
  TempRecipes files;
  const Recipe r = MustRead(files.Write("r.yaml", kEveryKey));
  EXPECT_EQ(*r.cluster.nodes, 2);
  EXPECT_EQ(*r.cluster.gpus_per_node, 4);
  EXPECT_EQ(*r.cluster.gpu, "h100_sxm");
  ASSERT_EQ(r.modules.size(), 2u);
  EXPECT_EQ(*r.modules[0].name, "eyes");
  EXPECT_EQ(*r.modules[0].tp, 2);
  EXPECT_FALSE(r.modules[0].dp.has_value());
  EXPECT_EQ(*r.modules[0].train_projection, "trained");
  const ModuleRecipe& m = r.modules[1];
  EXPECT_EQ(*m.model.name, "lm");
  EXPECT_EQ(m.model.name.where.line, 9);
  EXPECT_EQ(m.model_reference.where.line, 24);
  EXPECT_EQ(m.placement.column, 22);
  EXPECT_EQ(*m.first_rank, 2);
  EXPECT_EQ(*m.ranks, 6);
  EXPECT_EQ(*m.tp, 3);
  EXPECT_EQ(*m.cp, 4);
  EXPECT_EQ(*m.pp, 5);
  EXPECT_EQ(**m.dp, 6);
  EXPECT_EQ(*m.ep, 7);
  EXPECT_EQ(*m.expert_tp, 8);
  EXPECT_EQ(*m.dispatch, "all_gather");
  EXPECT_TRUE(*m.overlap_dispatch);
  EXPECT_EQ(**m.stage_layers, (std::vector<int64_t>{1, 2}));
  ASSERT_EQ(r.modules[0].recompute.size(), 1u);
  EXPECT_EQ(*r.modules[0].recompute[0], "block");
  ASSERT_EQ(r.bridges.size(), 1u);
  EXPECT_EQ(*r.bridges[0].from, "eyes");
  EXPECT_EQ(*r.bridges[0].to, "mouth");
  EXPECT_EQ(**r.bridges[0].token, 201);
  EXPECT_EQ(**r.bridges[0].max_mean_square, 50);
}

TEST(EveryKey, AdaptersArriveWhole) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", kSmallRecipe);
  EXPECT_FALSE(MustRead(path).modules.at(0).adapter.has_value());
  const ModuleRecipe m = MustRead(path, {"modules.language.train.backbone=frozen",
                                         "modules.language.adapter={rank: 3, alpha: 5.5, targets: [q_proj, "
                                         "mixer.o_proj]}"})
                             .modules.at(0);
  ASSERT_TRUE(m.adapter.has_value());
  EXPECT_EQ(*m.adapter->rank, 3);
  EXPECT_EQ(*m.adapter->alpha, 5.5);
  ASSERT_EQ(m.adapter->targets.size(), 2u);
  EXPECT_EQ(*m.adapter->targets[0], "q_proj");
  EXPECT_EQ(*m.adapter->targets[1], "mixer.o_proj");
}

TEST(EveryKey, SizesOfTheOuterStagesArriveWhole) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", kSmallRecipe);
  const ModuleRecipe m =
      MustRead(path, {"modules.language.parallel={first_stage_layers: 3, last_stage_layers: 4}"}).modules.at(0);
  EXPECT_EQ(**m.first_stage_layers, 3);
  EXPECT_EQ(**m.last_stage_layers, 4);
  EXPECT_EQ(
      Problems(path, {"modules.language.parallel={stage_layers: [1], last_stage_layers: 1}"}),
      "ConflictingKeys: `last_stage_layers` conflicts with `stage_layers`, which already gives the layers of every "
      "stage\n");
}

TEST(EveryKey, TrainingArrivesWhole) {
  TempRecipes files;
  const Recipe r = MustRead(files.Write("r.yaml", kEveryKey));
  EXPECT_EQ(*r.batch.global_samples, 24);
  EXPECT_EQ(*r.batch.micro_samples, 2);
  EXPECT_EQ(*r.batch.sequence_length, 99);
  EXPECT_EQ(*r.budget.train_samples, 1000);
  const LearningRateRecipe& rate = r.budget.learning_rate;
  EXPECT_EQ(*rate.peak, 0.05);
  EXPECT_EQ(*rate.min, 0.01);
  EXPECT_EQ(*rate.init, 0.02);
  EXPECT_EQ(**rate.warmup_samples, 30);
  EXPECT_FALSE(rate.warmup_fraction.has_value());
  EXPECT_EQ(**rate.decay_samples, 900);
  EXPECT_EQ(*rate.style, "wsd");
  EXPECT_EQ(**rate.wsd_decay_samples, 100);
  EXPECT_EQ(**rate.wsd_style, "cosine");
  EXPECT_EQ(*r.budget.weight_decay.start, 0.1);
  EXPECT_EQ(*r.budget.weight_decay.end, 0.2);
  EXPECT_EQ(*r.budget.weight_decay.style, "linear");
  EXPECT_EQ(r.optimizer.beta1, 0.7);
  EXPECT_EQ(r.optimizer.beta2, 0.8);
  EXPECT_EQ(r.optimizer.eps, 1e-7);
  EXPECT_EQ(r.optimizer.clip_grad_norm, 2.5);
  ASSERT_EQ(r.rate_parts.size(), 1u);
  EXPECT_EQ(*r.rate_parts[0].match, "eyes.projection");
  EXPECT_EQ(**r.rate_parts[0].learning_rate, 0.06);
  EXPECT_EQ(**r.rate_parts[0].weight_decay, 0.3);
  EXPECT_EQ(*r.gradients.buckets, 6);
  EXPECT_EQ(*r.precision, "fp64");
  EXPECT_TRUE(*r.deterministic);
  EXPECT_EQ(**r.checkpoint.every_steps, 44);
  EXPECT_EQ(**r.checkpoint.keep_last, 3);
  EXPECT_EQ(**r.checkpoint.keep_every_steps, 440);
  EXPECT_EQ(**r.checkpoint.keep_best, "held");
  ASSERT_EQ(r.evaluation->sets.size(), 1u);
  EXPECT_EQ(*r.evaluation->every_samples, 1056);
  EXPECT_EQ(*r.evaluation->sets[0].name, "held");
  EXPECT_EQ(r.evaluation->sets[0].samples->text, "11");
  EXPECT_EQ(**r.evaluation->sets[0].seed, 78);
  EXPECT_EQ(*r.divergence->window, 45);
  EXPECT_EQ(*r.divergence->factor, 2.5);
  EXPECT_EQ(*r.log.every_steps, 9);
  EXPECT_EQ(**r.cluster.host_memory, 750.5);
  EXPECT_EQ(**r.cluster.profile, "h100.json");
  EXPECT_EQ(**r.cluster.device.memory, 79.5);
  EXPECT_EQ(**r.cluster.device.peak, 800.5);
  EXPECT_EQ(**r.cluster.device.bandwidth, 3000.5);
  EXPECT_EQ(**r.cluster.device.link, 400.5);
  EXPECT_EQ(**r.cluster.device.network, 40.5);
  EXPECT_EQ(**r.launch.interface, "ib7");
  EXPECT_EQ(*r.launch.restarts, 4);
  EXPECT_EQ(*r.launch.deadline.floor, 61);
  EXPECT_EQ(*r.launch.deadline.first_step, 62);
  EXPECT_EQ(*r.launch.deadline.factor, 6.5);
  ASSERT_EQ(r.launch.fallbacks.size(), 1u);
  EXPECT_EQ(*r.launch.fallbacks[0], "less.yaml");
  ASSERT_EQ(r.launch.env.size(), 2u);
  EXPECT_EQ(*r.launch.env[0], "NCCL_DEBUG=INFO");
  EXPECT_EQ(*r.launch.env[1], "HF_TOKEN");
  ASSERT_EQ(r.launch.setup.size(), 2u);
  EXPECT_EQ(*r.launch.setup[1], "ulimit -l unlimited");
  const SlurmRecipe& slurm = r.launch.slurm;
  EXPECT_EQ(**slurm.partition, "long");
  EXPECT_EQ(**slurm.account, "team");
  EXPECT_EQ(**slurm.qos, "high");
  EXPECT_EQ(**slurm.constraint, "gpu");
  EXPECT_EQ(**slurm.reservation, "big");
  EXPECT_EQ(**slurm.time, "2:00:00");
  EXPECT_EQ(**slurm.gres, "gpu:h100:4");
  EXPECT_EQ(**slurm.cpus_per_task, 96);
  EXPECT_EQ(**slurm.container, "/image.sqsh");
  ASSERT_EQ(slurm.mounts.size(), 1u);
  EXPECT_EQ(*slurm.mounts[0], "/a:/b");
  ASSERT_EQ(slurm.options.size(), 1u);
  EXPECT_EQ(*slurm.options[0], "--exclude=n17");
  EXPECT_EQ(**r.initialize->from, "runs/before");
  EXPECT_TRUE(*r.initialize->optimizer);
  EXPECT_EQ(*r.initialize->schedule, "checkpoint");
  ASSERT_EQ(r.initialize->ignore.size(), 2u);
  EXPECT_EQ(*r.initialize->ignore[1], "b");
}

// A file of weights has neither moments nor counters.
TEST(EveryKey, OfInitializeThatAFileCannotFill) {
  TempRecipes files;
  const std::string recipe = files.Write("r.yaml", kEveryKey);
  Diagnostics problems;
  (void)ReadRecipe(recipe, {"initialize.from=w.safetensors"}, problems);
  EXPECT_TRUE(problems.has_errors());
  std::vector<std::string> messages;
  for (const Diagnostic& problem : problems.sorted()) {
    if (problem.kind != DiagnosticKind::kConflictingKeys) continue;
    EXPECT_TRUE(problem.where.known());
    messages.push_back(problem.message);
  }
  ASSERT_EQ(messages.size(), 2U);
  EXPECT_EQ(messages[0],
            "`initialize.optimizer` needs a checkpoint, but `from` names a safetensors file, which has no "
            "moments");
  EXPECT_EQ(messages[1],
            "`initialize.schedule` needs a checkpoint, but `from` names a safetensors file, which has no "
            "counters");
  EXPECT_TRUE(
      MustRead(recipe, {"initialize.from=w.safetensors", "initialize.optimizer=false", "initialize.schedule=recipe"})
          .initialize);
}

// Adapters begin without moments, whatever else the checkpoint of `from` has.
TEST(EveryKey, OfInitializeHasNoMomentsOfAdapters) {
  TempRecipes files;
  const std::string recipe = files.Write("r.yaml", kSmallRecipe);
  const auto problems_of = [&](const std::string& initialize, bool adapted) {
    std::vector<std::string> words = {"initialize=" + initialize};
    if (adapted) {
      words.insert(words.end(), {"modules.language.train.backbone=frozen",
                                 "modules.language.adapter={rank: 3, alpha: 5.5, targets: [q_proj]}"});
    }
    Diagnostics problems;
    EXPECT_TRUE(ReadRecipe(recipe, words, problems));
    std::vector<std::string> messages;
    for (const Diagnostic& problem : problems.sorted()) {
      if (problem.kind != DiagnosticKind::kConflictingKeys) continue;
      EXPECT_TRUE(problem.where.known());
      messages.push_back(problem.message);
    }
    return messages;
  };
  const std::vector<std::string> refused = {
      "`initialize.optimizer` takes moments from one checkpoint, and has none for the adapters of module language"};
  EXPECT_EQ(problems_of("{from: run, optimizer: true}", true), refused);
  EXPECT_EQ(problems_of("{sources: [{for: language, from: a}], optimizer: true}", true), refused);
  EXPECT_EQ(problems_of("{from: run, schedule: checkpoint}", true), std::vector<std::string>{});
  EXPECT_EQ(problems_of("{from: run, optimizer: true}", false), std::vector<std::string>{});
}

// Every part of every module has one source. All that is wrong is told at once, each at its place.
TEST(EveryKey, OfInitializeNamesASourceForEachPart) {
  TempRecipes files;
  // Overrides merge with what the recipe says, so it says nothing.
  std::string text = kEveryKey;
  const size_t line = text.find("initialize: ");
  text.erase(line, text.find('\n', line) - line);
  const std::string recipe = files.Write("r.yaml", text);
  const auto errors = [&](const std::string& initialize) {
    Diagnostics problems;
    EXPECT_TRUE(ReadRecipe(recipe, {"initialize=" + initialize}, problems));
    std::vector<std::string> messages;
    for (const Diagnostic& problem : problems.sorted()) {
      if (problem.severity != Severity::kError) continue;
      EXPECT_TRUE(problem.where.known()) << problem.message;
      messages.push_back(problem.message);
    }
    return messages;
  };
  using Messages = std::vector<std::string>;
  EXPECT_EQ(
      errors("{sources: [{for: eyes.backbone, from: a}, {for: mouth, from: b}, {for: eyes.projection, from: drawn}]}"),
      Messages{});
  EXPECT_EQ(errors("{sources: [{for: eyes, from: a}, {for: mouth, from: b}]}"), Messages{});
  EXPECT_EQ(
      errors("{sources: [{for: eyes, from: a}, {for: eyes.projection, from: b}, {for: mouth.backbone, from: c}]}"),
      (Messages{"mouth has no source in `initialize.sources`", "eyes.projection has two sources of weights",
                "there is no module or part \"mouth.backbone\""}));
  EXPECT_EQ(errors("{sources: [{for: eyes.backbone, from: a}, {for: mouth, from: b}], optimizer: true}"),
            (Messages{"eyes.projection has no source in `initialize.sources`",
                      "`initialize.optimizer` needs a checkpoint, but `sources` are several, and moments belong to one "
                      "checkpoint"}));
  EXPECT_EQ(errors("{from: a, sources: [{for: mouth, from: b}]}"),
            Messages{"`initialize.sources` conflicts with `initialize.from`, which is one source of all weights"});
  EXPECT_EQ(errors("{ignore: [a]}"), Messages{"`initialize` names no weights"});
  EXPECT_EQ(errors("{from: drawn}"), Messages{"`initialize.from` is drawn: weights are drawn without `initialize`"});
}

TEST(EveryKey, LintsArriveWhole) {
  TempRecipes files;
  Diagnostics problems;
  ReadRecipe(files.Write("r.yaml", kEveryKey), {}, problems);
  problems.Warning(DiagnosticKind::kMaskedTokensRaiseAuxLoss, {}, "silenced");
  problems.Warning(DiagnosticKind::kIdleGpus, {}, "a warning");
  EXPECT_FALSE(problems.has_errors());
  problems.Warning(DiagnosticKind::kDecayEndsEarly, {}, "an error");
  EXPECT_TRUE(problems.has_errors());
  ASSERT_EQ(problems.sorted().size(), 2u);
  EXPECT_EQ(problems.sorted()[1].notes.at(0).where.column, 17);
}

TEST(EveryKey, DataArrivesWhole) {
  TempRecipes files;
  const std::string path = files.Write("r.yaml", kEveryKey);
  const DataRecipe mock = MustRead(path).data;
  EXPECT_EQ(*mock.seed, 77);
  EXPECT_EQ(**mock.image_token, 200);
  EXPECT_TRUE(*mock.packed_documents);
  ASSERT_EQ(mock.image_grids.size(), 2u);
  EXPECT_EQ(*mock.image_grids[1], (std::vector<int64_t>{9, 3}));
  EXPECT_EQ(mock.image_grids[1].where.line, 38);
  EXPECT_EQ(mock.image_grids[1].where.column, 30);
  EXPECT_EQ(*mock.balance, "images");
  EXPECT_EQ(*mock.min_images, 1);
  EXPECT_EQ(*mock.max_images, 2);
  EXPECT_EQ(*mock.classes, 5);
  EXPECT_EQ(*mock.text_tokens, 6);
  // Evaluation sets are of the same kind.
  const auto sets = [](const char* of) {
    return std::string("evaluation.sets=[{name: held, samples: 11, ") + of + "}]";
  };
  const std::string sources = sets("sources: [{kind: tokens, path: w}]");
  const DataRecipe mixed =
      MustRead(path, {"data={kind: sources, sources: [{name: a, kind: webdataset, weight: 0.10, shards: [x, y], "
                      "ignore: [json, cls]}, {kind: tokens, path: z}], tokenizer: ids, tokenizer_digest: dig, "
                      "template_digest: est, image_token: 7, pad_token: 8, end_token: 9, shuffle: 1000, packing: none, "
                      "window: 5, long: cut, damaged: skip, most_damaged: 4, min_patches: 6, max_patches: 7, "
                      "resize: bicubic, grid: round_half_even, orientation: exif, index: there, "
                      "balance: images}",
                      sources})
          .data;
  ASSERT_EQ(mixed.sources.size(), 2u);
  EXPECT_EQ(**mixed.sources[0].name, "a");
  EXPECT_EQ(*mixed.sources[0].kind, SourceKind::kWebdataset);
  EXPECT_EQ(mixed.sources[0].weight->text, "0.10");
  ASSERT_EQ(mixed.sources[0].shards.size(), 2u);
  EXPECT_EQ(*mixed.sources[0].shards[1], "y");
  ASSERT_EQ(mixed.sources[0].ignore.size(), 2u);
  EXPECT_EQ(*mixed.sources[0].ignore[1], "cls");
  EXPECT_FALSE(mixed.sources[1].name);
  EXPECT_EQ(**mixed.sources[1].path, "z");
  EXPECT_EQ(mixed.sources[1].weight->text, "1");
  EXPECT_FALSE(mixed.sources[1].weight.where.known());
  EXPECT_TRUE(mixed.sources[1].where.known());
  EXPECT_EQ(*mixed.tokenizer, "ids");
  EXPECT_EQ(**mixed.tokenizer_digest, "dig");
  EXPECT_EQ(**mixed.template_digest, "est");
  EXPECT_EQ(**mixed.image_token, 7);
  EXPECT_EQ(**mixed.pad_token, 8);
  EXPECT_EQ(**mixed.end_token, 9);
  EXPECT_EQ(mixed.shuffle->text, "1000");
  EXPECT_EQ(*mixed.packing, "none");
  EXPECT_EQ(*mixed.window, 5);
  EXPECT_EQ(*mixed.long_documents, "cut");
  EXPECT_EQ(*mixed.damaged, "skip");
  EXPECT_EQ(*mixed.most_damaged, 4);
  EXPECT_EQ(*mixed.min_patches, 6);
  EXPECT_EQ(*mixed.max_patches, 7);
  EXPECT_EQ(*mixed.resize, "bicubic");
  EXPECT_EQ(*mixed.grid, "round_half_even");
  EXPECT_EQ(*mixed.orientation, "exif");
  EXPECT_EQ(*mixed.index, "there");
  EXPECT_EQ(*mixed.balance, "images");
  const DataRecipe plain = MustRead(path, {"data={kind: sources, sources: [{kind: tokens, path: z}]}", sources}).data;
  EXPECT_EQ(*plain.tokenizer, "bytes");
  EXPECT_EQ(plain.shuffle->text, "all");
  EXPECT_EQ(*plain.packing, "first_fit");
  EXPECT_EQ(*plain.window, 128);
  EXPECT_EQ(*plain.long_documents, "error");
  EXPECT_EQ(*plain.damaged, "error");
  EXPECT_EQ(*plain.most_damaged, 100);
  EXPECT_EQ(*plain.index, "data_index");
  EXPECT_EQ(*plain.balance, "none");
  const DataRecipe recorded = MustRead(path, {"data={kind: recorded, path: z, image_token: 3}", sets("path: w")}).data;
  EXPECT_EQ(**recorded.path, "z");
}

TEST(EveryKey, AbsentOnesHaveTheTablesDefaultsAndNoLocation) {
  TempRecipes files;
  const Recipe r = MustRead(files.Write("r.yaml", kSmallRecipe), {"budget.learning_rate.warmup_fraction=0.25"});
  EXPECT_EQ(**r.budget.learning_rate.warmup_fraction, 0.25);
  EXPECT_EQ(*r.cluster.gpus_per_node, 8);
  EXPECT_FALSE(r.cluster.gpus_per_node.where.known());
  EXPECT_EQ(r.optimizer.beta2, 0.95);
  EXPECT_EQ(r.optimizer.eps, 1e-8);
  EXPECT_EQ(*r.precision, "bf16");
  EXPECT_FALSE(*r.deterministic);
  EXPECT_EQ(*r.budget.learning_rate.style, "constant");
  EXPECT_EQ(*r.data.seed, 1234);
  EXPECT_FALSE(r.data.seed.where.known());
}

// Single typing mistakes (a letter is missing or doubled, or two are swapped) in all keys: the help names the right key
// for at least 95 % of them.
TEST(EveryKey, SlipsAreAnsweredWithTheRightKey) {
  int slips = 0, right = 0;
  for (const KeySpec& spec : RecipeKeys()) {
    const std::string path(spec.path);
    const size_t dot = path.rfind('.');
    const std::string word(WordOf(spec));
    if (word.size() < 4) continue;
    std::vector<std::string> known;
    for (const KeySpec* sibling : KeysOf(dot == std::string::npos ? "" : path.substr(0, dot)))
      known.emplace_back(WordOf(*sibling));
    for (size_t i = 0; i < word.size(); ++i) {
      std::vector<std::string> wrong = {std::string(word).erase(i, 1), std::string(word).insert(i, 1, word[i])};
      if (i + 1 < word.size()) {
        wrong.push_back(word);
        std::swap(wrong.back()[i], wrong.back()[i + 1]);
      }
      for (const std::string& slip : wrong) {
        slips += slip != word;
        right += slip != word && NearName(slip, known) == word;
      }
    }
  }
  EXPECT_GT(slips, 1000);
  EXPECT_GE(right, slips * 95 / 100) << right << " of " << slips;
}

}  // namespace
}  // namespace planwright
