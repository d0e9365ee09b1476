// What the notation says shortly means what longer lines say: the blocks of both are the same, forward and backward, on
// each layout, and the rules that know nothing of the deriver find nothing wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/compile/model/assign_buckets.h"
#include "planner/compile/model/expand_statement.h"
#include "planner/compile/schedule/blocks/lower_stage.h"
#include "planner/compile/schedule/derive/derive_module.h"
#include "planner/compile/schedule/derive/slot_gradients.h"
#include "planner/plan/plan_json.h"
#include "planner/verify/rules.h"
#include "planner/verify/v11_what_follows/piece_graph.h"
#include "tests/plan/statement/notation_kind.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::Pair;

struct Derived {
  ModelStatement statement;
  Plan plan;
  SlotGradients gradients;  // of a layer

  Derived(const std::string& text, bool biased, bool rough, int tp) : statement(testing::StatementOfText(text)) {
    Module& module = plan.modules.emplace_back(Module{.name = "images", .kind = "notation"});
    module.has_images = true;
    module.trains_backbone = module.trains_projection = true;
    module.grid.tp = tp;
    module.constants = {{"hidden", int64_t{12}}, {"ffn", int64_t{20}},        {"norm_eps", 1e-5},
                        {"init_std", 0.02},      {"biased", int64_t{biased}}, {"rough", int64_t{rough}}};
    module.layers = {{.kind = 'V', .frame = "images.layers.0"}};
    plan.precision = "fp64";
    ExpandStatement(statement, ModelNumbers({}, module, statement), false, module);
    const ModuleBlocks blocks =
        DeriveModule({plan.modules, plan.bridges, plan.budget, plan.data, DType::kFp64}, module, statement, false);
    gradients = blocks.layers.at('V').gradients;
    AssignBuckets(1, DType::kFp64, DType::kFp64, GradientsOverTp(module, blocks), module);
    for (const LayerBlocks* piece : {&blocks.embedding, &blocks.layers.at('V'), &blocks.head}) {
      plan.blocks.push_back(piece->forward);
      if (piece->backward) plan.blocks.push_back(*piece->backward);
    }
    const StageBlocks stage = LowerStage(module, blocks, 0, false);
    plan.blocks.push_back(stage.forward);
    plan.blocks.push_back(*stage.backward);
  }

  // By V6, which reads blocks and knows nothing of the deriver.
  std::vector<std::string> Problems() const {
    std::vector<std::string> problems;
    for (const Violation& violation : VerifyGradientSums(PlanIndex(plan))) problems.push_back(violation.message);
    return problems;
  }

  PieceGraph Graph() const {
    return PieceGraph(plan, plan.modules[0], ModelNumbers({}, plan.modules[0], statement), statement.layers.at('V'));
  }
};

// The same kind in the notation of before: a compute for each case.
std::string LongText() {
  return absl::StrReplaceAll(testing::NotationText(), {{"  u = linear n [up up_bias?]\n",
                                                        "  when biased: u = linear n [up up_bias]\n"
                                                        "  when 1 - biased: u = linear n [up]\n"},
                                                       {"eps (norm_eps)", "eps norm_eps"},
                                                       {"  g = gelu u [] erf (exact)\n",
                                                        "  when exact: g = gelu u [] erf (1)\n"
                                                        "  when rough: g = gelu u\n"}});
}

TEST(StatedNotation, MeansWhatLongerLinesSay) {
  ASSERT_NE(LongText(), testing::NotationText());
  for (const int which : {0, 1, 2, 3}) {
    const bool biased = (which & 1) != 0, rough = (which & 2) != 0;
    for (const int tp : {1, 2, 4}) {
      const Derived brief(testing::NotationText(), biased, rough, tp), full(LongText(), biased, rough, tp);
      EXPECT_EQ(WritePlan(brief.plan), WritePlan(full.plan)) << biased << rough << " tp " << tp;
      EXPECT_THAT(brief.Problems(), IsEmpty());
    }
  }
}

TEST(StatedNotation, ASlotThatIsNotThereHasNoGradient) {
  const Derived with(testing::NotationText(), true, false, 2), without(testing::NotationText(), false, false, 2);
  EXPECT_THAT(with.gradients, Contains(Key("up_bias")));
  EXPECT_THAT(without.gradients, Not(Contains(Key("up_bias"))));
  EXPECT_THAT(with.Graph().computes().at(1).slots, ElementsAre("up", "up_bias"));
  EXPECT_THAT(without.Graph().computes().at(1).slots, ElementsAre("up"));
}

// A block begins with each layer that opens one, and with the first layer. `layers`: their letters.
TEST(StatedNotation, NamesHaveTheNumbersOfBlocks) {
  const auto names = [](const std::string& layers) {
    const ModelStatement& statement = testing::NotationStatement();
    Module module = {.name = "images", .kind = "notation"};
    module.constants = {{"hidden", int64_t{12}}, {"ffn", int64_t{20}},   {"norm_eps", 1e-5},
                        {"init_std", 0.02},      {"biased", int64_t{0}}, {"rough", int64_t{0}}};
    for (char letter : layers)
      module.layers.push_back({.kind = letter, .frame = "images.layers." + std::to_string(module.layers.size())});
    ExpandStatement(statement, ModelNumbers({}, module, statement), false, module);
    std::vector<std::string> all;
    for (const Parameter& parameter : module.parameters) {
      if (parameter.name.ends_with("up.weight") || parameter.shape.size() == 1) all.push_back(parameter.name);
    }
    return all;
  };
  EXPECT_THAT(names("AVAV"), ElementsAre("images.blocks.0.norms.0.weight", "images.blocks.0.norm.weight",
                                         "images.blocks.0.up.weight", "images.blocks.1.norms.1.weight",
                                         "images.blocks.1.norm.weight", "images.blocks.1.up.weight"));
  EXPECT_THAT(names("VAAV"), ElementsAre("images.blocks.0.norm.weight", "images.blocks.0.up.weight",
                                         "images.blocks.1.norms.0.weight", "images.blocks.2.norms.1.weight",
                                         "images.blocks.2.norm.weight", "images.blocks.2.up.weight"));
  // No kind of layers opens a block: each layer is one.
  ModelStatement none = *StatementOf("hybrid_lm");
  const std::vector<LayerPlace> places = PlacesOf(none, {{.kind = 'M'}, {.kind = 'E'}, {.kind = 'M'}});
  EXPECT_EQ(NameAt(places.at(2), "{layer} {block} {tap}"), "2 2 1");
}

// The attribute `erf` of the GELUs of a module: of the layer's, forward and backward, and of the head's.
std::vector<bool> ErfOf(const Plan& plan) {
  std::vector<bool> erf;
  for (const Block& block : plan.blocks) {
    for (const Instruction& op : block.body) {
      if (op.kind != OpKind::kGelu && op.kind != OpKind::kGeluGrad) continue;
      const int64_t* value = op.FindInteger("erf");
      EXPECT_TRUE(value == nullptr || *value == 1);
      erf.push_back(value != nullptr);
    }
  }
  return erf;
}

// One operation twice in a module, each with a setting of its own; a backward has that of its forward.
TEST(StatedNotation, WhatIsStatedIsThereWhereItIsNotZero) {
  EXPECT_THAT(ErfOf(Derived(testing::NotationText(), true, true, 1).plan), ElementsAre(false, false, true, true));
  EXPECT_THAT(ErfOf(Derived(testing::NotationText(), true, false, 1).plan), ElementsAre(true, true, true, true));
}

// V11, by its own reading of the statement.
TEST(StatedNotation, TheGraphHasTheSettings) {
  const auto settings = [](bool rough, size_t compute) {
    return Derived(testing::NotationText(), true, rough, 1).Graph().computes().at(compute).settings;
  };
  EXPECT_THAT(settings(true, 0), ElementsAre(Pair("eps", Attribute(1e-5))));
  EXPECT_THAT(settings(true, 2), IsEmpty());
  EXPECT_THAT(settings(false, 2), ElementsAre(Pair("erf", Attribute(int64_t{1}))));
}

}  // namespace
}  // namespace planwright
