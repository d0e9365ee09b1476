// What a backward adds to the gradient of a weight decides the kind of its bucket. It follows from the statement: a
// norm over heads, which tp cuts, gives terms of a sum, in an encoder too.
#include "planner/compile/schedule/derive/slot_gradients.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_replace.h"
#include "planner/compile/model/assign_buckets.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/compile/schedule/blocks/lower_stage.h"
#include "planner/compile/schedule/derive/derive_module.h"
#include "planner/plan/statement/parse_statement.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using ::testing::IsEmpty;

// An encoder whose layers have a norm over heads, as those of q and k are: [tokens, heads, size].
// `cut`: how the stream lies over the ranks.
constexpr char kNormOverHeads[] = R"(
kind heads
can has_images
constant heads int
constant size int
constant norm_eps real
stream [.tokens, heads, size] cut %s
given patches [.tokens, heads, size] cut %s
gathered tokens lane_tokens
piece embed
  weight up up.weight [size, size] normal [1]
  inputs patches
  x = linear patches [up]
  outputs x
piece V
  weight norm norm.weight [size] ones
  inputs x
  n n_scale = rms_norm x [norm] eps norm_eps
  x_out = add x n
  outputs x_out
piece head
  inputs x
  rows = squared_relu x
  outputs rows
)";

struct Derived {
  Plan plan;
  ModelStatement statement;

  Derived(const std::string& cut, int tp) {
    statement = ParseStatement("heads", absl::StrReplaceAll(kNormOverHeads, {{"%s", cut}})).statement;
    Module& module = plan.modules.emplace_back(Module{.name = "images", .kind = "heads"});
    module.has_images = true;
    module.trains_backbone = module.trains_projection = true;
    module.grid.tp = tp;
    module.constants = {{"heads", int64_t{4}}, {"size", int64_t{6}}, {"norm_eps", 1e-5}};
    module.layers = {{.kind = 'V', .frame = "images.layers.0"}};
    ExpandStatement(statement, ModelNumbers({}, module, statement), false, module);
    const ModuleBlocks blocks =
        DeriveModule({plan.modules, plan.bridges, plan.budget, plan.data, DType::kFp64}, module, statement, false);
    AssignBuckets(1, DType::kFp64, DType::kFp64, GradientsOverTp(module, blocks), module);
    plan.precision = "fp64";
    for (const LayerBlocks* piece : {&blocks.embedding, &blocks.layers.at('V'), &blocks.head}) {
      plan.blocks.push_back(piece->forward);
      if (piece->backward) plan.blocks.push_back(*piece->backward);
    }
    const StageBlocks stage = LowerStage(module, blocks, 0, false);
    plan.blocks.push_back(stage.forward);
    plan.blocks.push_back(*stage.backward);
  }

  const Bucket& BucketOf(const std::string& slot) const {
    for (const Storage& storage : plan.modules[0].storages) {
      if (storage.slot == slot) return plan.modules[0].buckets.at(static_cast<size_t>(storage.bucket));
    }
    ADD_FAILURE() << slot;
    return plan.modules[0].buckets.at(0);
  }

  // By V6, which reads blocks and knows nothing of the deriver.
  std::vector<std::string> Problems() const {
    std::vector<std::string> problems;
    for (const Violation& violation : VerifyGradientSums(PlanIndex(plan))) problems.push_back(violation.message);
    return problems;
  }
};

TEST(SlotGradients, ANormOverHeadsGivesTermsWhereTpCutsTheHeads) {
  Derived derived("1 over tp", 2);
  EXPECT_EQ(derived.BucketOf("norm").tp, TpGradient::kPartial);
  EXPECT_EQ(derived.BucketOf("norm").tp_group, "images.tp");
  EXPECT_THAT(derived.Problems(), IsEmpty());
}

TEST(SlotGradients, ANormOfRowsThatEachRankHasGivesTheWholeGradient) {
  Derived derived("0 over cp", 2);
  EXPECT_EQ(derived.BucketOf("norm").tp, TpGradient::kReplicated);
  EXPECT_EQ(derived.BucketOf("norm").tp_group, "");
  EXPECT_THAT(derived.Problems(), IsEmpty());
}

TEST(SlotGradients, OneRankAlongTpHasAllParts) {
  EXPECT_EQ(Derived("1 over tp", 1).BucketOf("norm").tp, TpGradient::kSharded);
}

// The rule of before, by which every encoder has whole gradients, is refused.
TEST(SlotGradients, VerifyJudgesTheKindByTheBlocks) {
  Derived derived("1 over tp", 2);
  for (Bucket& bucket : derived.plan.modules[0].buckets) {
    if (bucket.tp == TpGradient::kPartial) bucket.tp = TpGradient::kReplicated;
  }
  EXPECT_THAT(derived.Problems(),
              ::testing::Contains("the gradient of images.layers.0.norm is partial over tp, but bucket "
                                  "images.dense.partial.0 takes it for replicated"));
}

}  // namespace
}  // namespace planwright
