// Whole compiles of encoders in many layouts: disjoint with tp, cp, dp and pp on both sides of the bridge, with frozen
// parts, recomputed, several encoders, and colocated. Each plan passes its proof, also after it was written and read.
#include <gtest/gtest.h>

#include <algorithm>

#include "planner/compile/compile.h"
#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

struct Side {
  int tp = 1, cp = 1, dp = 1, pp = 1;
  int ranks() const { return tp * cp * dp * pp; }
};

void Place(const Side& side, int first_rank, ModuleRecipe& module) {
  module.first_rank = int64_t{first_rank};
  module.ranks = int64_t{side.ranks()};
  module.tp = int64_t{side.tp};
  module.cp = int64_t{side.cp};
  module.pp = int64_t{side.pp};
}

// One encoder before the language model.
Recipe Apart(const Side& encoder, const Side& language, int micro_samples = 1) {
  Recipe recipe = testing::TinyRecipe({.colocated = false, .micro_samples = micro_samples});
  recipe.batch.global_samples = int64_t{4 * language.dp * micro_samples};
  recipe.modules[1].model.pattern = std::string("ME*E");
  Give(recipe.modules[1].model, {{"mamba.groups", 4}});
  Place(encoder, 0, recipe.modules[0]);
  Place(language, encoder.ranks(), recipe.modules[1]);
  return recipe;
}

// `count` encoders, each with a bridge and a token of its own.
Recipe Several(int count, const std::vector<Side>& sides, bool colocated) {
  Recipe recipe = Apart(sides.front(), sides.back());
  const ModuleRecipe encoder = recipe.modules[0], language = recipe.modules[1];
  recipe.data.image_grids = {Located(std::vector<int64_t>{2, 4})};
  recipe.modules.clear();
  recipe.bridges.clear();
  int first = 0;
  for (int i = 0; i < count; ++i) {
    ModuleRecipe& module = recipe.modules.emplace_back(encoder);
    module.name = std::string("encoder_") + static_cast<char>('a' + i);
    Place(sides[i], first, module);
    if (!colocated) first += sides[i].ranks();
    recipe.bridges.push_back({*module.name, std::string("language"), Located<int64_t>(int64_t{5 + i})});
  }
  recipe.modules.push_back(language);
  Place(sides.back(), first, recipe.modules.back());
  return recipe;
}

Plan Compile(const Recipe& recipe) {
  Plan plan = testing::Compiled(recipe);
  const std::string text = WritePlan(plan);
  const auto again = ReadPlan(text);
  EXPECT_TRUE(again.ok()) << again.status();
  if (!again.ok()) return {};
  EXPECT_EQ(WritePlan(*again), text);
  for (const Violation& violation : VerifyPlan(*again)) ADD_FAILURE() << violation.rule << ": " << violation.message;
  return plan;
}

int64_t Count(const Plan& plan, OpKind kind) {
  int64_t count = 0;
  for (const Role& role : plan.roles) {
    count += std::count_if(role.step.begin(), role.step.end(), [&](const Instruction& i) { return i.kind == kind; });
  }
  for (const Block& block : plan.blocks) {
    count += std::count_if(block.body.begin(), block.body.end(), [&](const Instruction& i) { return i.kind == kind; });
  }
  return count;
}

bool SendsBackward(const Plan& plan, const std::string& bridge) {
  for (const Role& role : plan.roles) {
    for (const Instruction& instruction : role.step) {
      for (const ExchangePart& part : instruction.parts) {
        if (part.bridge == bridge && part.backward) return true;
      }
    }
  }
  return false;
}

TEST(EncoderLayouts, AnyTwoLayoutsApart) {
  const Side sides[] = {{}, {.tp = 2}, {.dp = 3}, {.pp = 2}, {.cp = 2}, {.tp = 2, .cp = 2, .dp = 2, .pp = 2}};
  for (const Side& encoder : sides) {
    for (const Side& language : sides) {
      SCOPED_TRACE(::testing::Message() << "encoder tp" << encoder.tp << " cp" << encoder.cp << " dp" << encoder.dp
                                        << " pp" << encoder.pp << ", language tp" << language.tp << " cp" << language.cp
                                        << " dp" << language.dp << " pp" << language.pp);
      const Plan plan = Compile(Apart(encoder, language));
      ASSERT_FALSE(plan.roles.empty());
      EXPECT_EQ(Count(plan, OpKind::kDealBands) > 0, encoder.cp > 1);
      EXPECT_EQ(Count(plan, OpKind::kReadImageSizes) > 0, encoder.pp > 1);
      EXPECT_TRUE(SendsBackward(plan, "bridge.radio_encoder.language"));
    }
  }
}

TEST(EncoderLayouts, FrozenParts) {
  for (const Side& encoder : {Side{}, Side{.tp = 2, .dp = 2}, Side{.pp = 2}, Side{.tp = 2, .cp = 2, .pp = 2}}) {
    for (int frozen = 1; frozen < 8; ++frozen) {
      if (frozen == 7) continue;  // nothing learns
      SCOPED_TRACE(::testing::Message() << "pp" << encoder.pp << " tp" << encoder.tp << " frozen " << frozen);
      Recipe recipe = Apart(encoder, {.tp = 2, .dp = 2});
      const Located<std::string> word = std::string("frozen");
      if (frozen & 1) recipe.modules[0].train_backbone = word;
      if (frozen & 2) recipe.modules[0].train_projection = word;
      if (frozen & 4) recipe.modules[1].train_backbone = word;
      const Plan plan = Compile(recipe);
      ASSERT_FALSE(plan.roles.empty());
      EXPECT_EQ(SendsBackward(plan, "bridge.radio_encoder.language"), (frozen & 3) != 3);
      // No weight of a frozen part has a gradient or a bucket.
      for (const Module& module : plan.modules) {
        for (const Storage& storage : module.storages) {
          EXPECT_EQ(storage.bucket >= 0, module.parameters[storage.parameters.front()].trained);
        }
      }
      // A stage behind which nothing learns runs forward only.
      for (const StageSchedule& stage : plan.schedule) {
        const bool forward_only = std::none_of(stage.order.begin(), stage.order.end(),
                                               [](const std::string& action) { return action[0] == 'B'; });
        const bool last = stage.stage + 1 == encoder.pp;
        if (stage.module == "radio_encoder") {
          EXPECT_EQ(forward_only, (frozen & 1) && ((frozen & 2) || !last));
        }
      }
    }
  }
}

TEST(EncoderLayouts, RecomputedBlocks) {
  for (const Side& encoder : {Side{}, Side{.tp = 2, .cp = 2, .pp = 2}}) {
    Recipe recipe = Apart(encoder, {.dp = 2});
    recipe.modules[0].recompute = {std::string("block")};
    const Plan plan = Compile(recipe);
    EXPECT_NE(plan.FindBlock("radio_encoder.layer.recompute"), nullptr);
  }
}

TEST(EncoderLayouts, SeveralApart) {
  for (const auto& sides : {std::vector<Side>{{}, {}, {}},
                            {{.dp = 2}, {.tp = 2, .pp = 2}, {.tp = 2, .dp = 3}},
                            {{.cp = 2}, {.dp = 4}, {.cp = 2, .dp = 2}},
                            {{.pp = 2}, {.dp = 2}, {.tp = 2}, {.dp = 2, .pp = 2}}}) {
    const int count = static_cast<int>(sides.size()) - 1;
    const Plan plan = Compile(Several(count, sides, false));
    ASSERT_EQ(plan.bridges.size(), static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) EXPECT_EQ(plan.bridges[i].token, 5 + i);
    EXPECT_EQ(Count(plan, OpKind::kMergeImages), count);
    EXPECT_EQ(plan.modules[1].parameters.front().file_name,
              "encoder_b.vision_model.radio_model.model.patch_generator.embedder.weight");
  }
}

TEST(EncoderLayouts, SeveralColocated) {
  for (const auto& sides : {std::vector<Side>{{.dp = 4}, {.tp = 4}, {.tp = 2, .dp = 2}},
                            {{.tp = 2, .dp = 2}, {.tp = 2, .dp = 2}, {.tp = 2, .dp = 2}}}) {
    const Plan plan = Compile(Several(2, sides, true));
    ASSERT_EQ(plan.bridges.size(), 2u);
    for (const Bridge& bridge : plan.bridges) EXPECT_EQ(bridge.kind, "colocated");
    EXPECT_EQ(plan.roles.size(), 1u);
  }
}

TEST(EncoderLayouts, FewerSamplesThanEncoderLanes) {
  const Plan plan = Compile(Apart({.dp = 5}, {.dp = 2}));
  ASSERT_EQ(plan.bridges.size(), 1u);
  EXPECT_EQ(plan.bridges[0].forward.size(), 2u);  // two of five lanes have a sample
}

}  // namespace
}  // namespace planwright
