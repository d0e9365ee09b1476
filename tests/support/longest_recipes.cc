#include "tests/support/longest_recipes.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/compile/compile.h"
#include "planner/recipe/recipe_reader.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr int kEncoderRanks = 6, kLanguageRanks = 8, kLanes = 2;  // of a stage: tp2 dp3, and tp2 cp2 dp2

class Unrolled {
 public:
  explicit Unrolled(const Plan& plan) {
    for (const Block& block : plan.blocks) blocks_.emplace(block.name, &block);
  }
  Work Of(const std::vector<Instruction>& list) {
    Work all = {.instructions = static_cast<int64_t>(list.size())};
    for (const Instruction& op : list) {
      if (op.kind != OpKind::kCall) continue;
      const Work inner = OfBlock(op.block);
      all.instructions += inner.instructions;
      all.calls += 1 + inner.calls;
    }
    return all;
  }

 private:
  Work OfBlock(std::string_view block) {
    if (auto known = known_.find(block); known != known_.end()) return known->second;
    return known_[block] = Of(blocks_.at(block)->body);
  }
  std::map<std::string_view, const Block*> blocks_;
  std::map<std::string_view, Work> known_;
};

Work WorkOfRecipe(const std::vector<std::string>& overrides) {
  Diagnostics problems;
  const std::optional<Recipe> recipe = ReadRecipe(LongBase(), overrides, problems);
  const std::optional<Plan> plan = recipe ? CompileRecipe(*recipe, problems) : std::nullopt;
  Require(plan.has_value(), "a long recipe does not compile: " + problems.sorted().back().message);
  return WorkOf(*plan);
}

}  // namespace

std::vector<LongShape> LongestShapes() {
  constexpr int kLayers = kMostLayers / 2, kStages = kMostStages / 2, kEncoders = static_cast<int>(kMostModules) - 1;
  return {
      {.name = "most microbatches"},
      {.name = "most layers", .encoder_layers = kLayers, .pattern = "ME*E", .layers = kLayers},
      {.name = "most expert layers", .layers = 2 * kLayers - 1},
      {.name = "most stages",
       .encoder_layers = kStages,
       .encoder_stages = kStages,
       .layers = kStages,
       .stages = kStages},
      {.name = "most layers on most stages",
       .encoder_layers = kLayers / kStages * kStages,
       .encoder_stages = kStages,
       .pattern = "ME*E",
       .layers = kLayers / kStages * kStages,
       .stages = kStages},
      {.name = "most encoders", .encoders = kEncoders},
      {.name = "most encoders on stages",
       .encoders = kEncoders,
       .encoder_layers = 5,
       .encoder_stages = 5,
       .layers = 5,
       .stages = 5},
      {.name = "a bit of all",
       .encoders = 3,
       .encoder_layers = 24,
       .encoder_stages = 2,
       .pattern = "ME*E",
       .layers = 48,
       .stages = 4},
      {.name = "many layers and microbatches", .encoder_layers = 8, .pattern = "ME*E", .layers = 8},
  };
}

std::string LongBase() { return InSource("recipes/nemotron_moe_vlm_tiny.yaml"); }

std::vector<std::string> LongOverrides(const LongShape& shape, int64_t microbatches) {
  std::vector<std::string> overrides, bridges;
  const auto set = [&](const auto&... words) { overrides.push_back(absl::StrCat(words...)); };
  int first = 0;
  for (int i = 0; i < shape.encoders; ++i) {
    const std::string name = i == 0 ? "radio_encoder" : absl::StrCat("encoder", i);
    const int ranks = kEncoderRanks * shape.encoder_stages;
    set("modules.", name, "={model: radio_vit_tiny, placement: {first_rank: ", first, ", ranks: ", ranks,
        "}, parallel: {tp: 2, pp: ", shape.encoder_stages, "}, recompute: block}");
    bridges.push_back(absl::StrCat("{from: ", name, ", to: language, token: ", 255 - i, "}"));
    first += ranks;
  }
  const int ranks = kLanguageRanks * shape.stages;
  set("modules.language={model: hybrid_moe_tiny, placement: {first_rank: ", first, ", ranks: ", ranks,
      "}, parallel: {tp: 2, cp: 2, pp: ", shape.stages, ", ep: 4}, recompute: full}");
  set("bridges=[", absl::StrJoin(bridges, ", "), "]");
  set("cluster={nodes: ", first + ranks, ", gpus_per_node: 1, gpu: h200_sxm}");
  std::string pattern;
  while (static_cast<int>(pattern.size()) < shape.layers) pattern += shape.pattern;
  set("models.hybrid_moe_tiny.pattern=\"", pattern.substr(0, static_cast<size_t>(shape.layers)), "\"");
  set("models.hybrid_moe_tiny.mamba.groups=8");
  set("models.hybrid_moe_tiny.attention.kv_groups=4");
  set("models.radio_vit_tiny.layers=", shape.encoder_layers);
  set("gradients={overlap_reduce: true, overlap_gather: true, buckets: ",
      kMostBuckets / 3 / (shape.stages + shape.encoders * shape.encoder_stages), "}");
  set("batch={global_samples: ", microbatches * kLanes, ", micro_samples: 1, sequence_length: 96}");
  set("budget.train_samples=1000000");
  set("budget.learning_rate={peak: 1.0e-3}");
  set("data={kind: mock, image_token: 255, image_grids: [[2, 2]], max_images: 1, text_tokens: 2}");
  return overrides;
}

int64_t MostMicrobatches(const LongShape& shape) {
  const Work one = WorkOfRecipe(LongOverrides(shape, 1)), two = WorkOfRecipe(LongOverrides(shape, 2));
  const int64_t instructions = 1 + (kMostInstructions - one.instructions) / (two.instructions - one.instructions);
  const int64_t calls = 1 + (kMostCalls - one.calls) / (two.calls - one.calls);
  return std::min({kMostPassages / (shape.stages + shape.encoders * (shape.encoder_stages + 1)), instructions, calls});
}

Work WorkOf(const Plan& plan) {
  Work all;
  Unrolled unrolled(plan);
  const auto add = [&](const std::vector<Instruction>& list) {
    const Work work = unrolled.Of(list);
    all.instructions += work.instructions;
    all.calls += work.calls;
  };
  for (const Block& block : plan.blocks) add(block.body);
  for (const Role& role : plan.roles) {
    for (const RoleList& part : kRoleLists) add(role.*part.list);
  }
  return all;
}

}  // namespace planwright::testing
