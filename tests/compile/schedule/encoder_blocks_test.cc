// The encoder's blocks in every layout and with each part frozen. They keep the rules of values, communicate what the
// layout needs, and compute and save nothing that nobody reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "planner/compile/model/expand_model.h"
#include "planner/compile/schedule/derive/derive_module.h"
#include "planner/compile/schedule/programs/module_symbols.h"
#include "planner/verify/rules.h"
#include "tests/compile/schedule/block_queries.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::The;
using ::testing::UnorderedElementsAre;

struct Case {
  int tp = 1, cp = 1;
  bool backbone = true, projection = true, recompute = false;
};

ModelRecipe Model() { return testing::TinyRecipe({}).modules[0].model; }

struct Lowered {
  Module module;
  ModuleBlocks blocks;
  const LayerBlocks& layer() const { return blocks.layers.at('V'); }
};

Lowered Lower(const Case& layout) {
  Lowered lowered;
  Module& module = lowered.module;
  module.name = "images";
  module.kind = "radio_vit";
  module.grid.tp = layout.tp;
  module.grid.cp = layout.cp;
  module.trains_backbone = layout.backbone;
  module.trains_projection = layout.projection;
  if (layout.recompute) module.recompute = {"block"};
  ModelRecipe recipe = Model();
  Give(recipe, {{"crop", 1}});
  module.has_images = true;
  module.constants = ConstantsOf(recipe, recipe.numbers, {.hidden = 32, .init_std = 0.02, .layers = 4});
  module.layers.push_back({.kind = 'V', .frame = "images.layers.0"});
  const std::vector<Module> modules = {module};
  const Plan empty;
  lowered.blocks = DeriveModule({modules, empty.bridges, empty.budget, empty.data, DType::kFp64}, module,
                                *StatementOf(module.kind), false);
  return lowered;
}

// "all_gather_v cp kv": kind, group and first operand of each communication.
std::vector<std::string> Messages(const Block& block) {
  std::vector<std::string> messages;
  for (const Instruction& i : block.body) {
    if (OpClassOf(i.kind) != OpClass::kCommunication) continue;
    messages.push_back(std::string(OpName(i.kind)) + " " + i.group.substr(i.group.find('.') + 1) + " " +
                       i.inputs.front());
  }
  return messages;
}

std::set<std::string> Gradients(const std::optional<Block>& block) {
  std::set<std::string> slots;
  if (!block) return slots;
  for (const Instruction& i : block->body) slots.insert(i.gradients.begin(), i.gradients.end());
  return slots;
}

TEST(EncoderBlocks, KeepTheRulesOfValuesInEveryLayout) {
  for (int tp : {1, 2}) {
    for (int cp : {1, 2, 3}) {
      for (int frozen = 0; frozen < 4; ++frozen) {
        for (bool recompute : {false, true}) {
          Lowered lowered = Lower({tp, cp, (frozen & 1) == 0, (frozen & 2) == 0, recompute});
          Plan plan;
          plan.precision = "fp64";
          for (const auto& [name, axis] : {std::pair("tp", Axis::kTp), std::pair("cp", Axis::kCp)}) {
            plan.groups.push_back({.name = std::string("images.") + name,
                                   .short_name = name,
                                   .module = "images",
                                   .axes = {axis},
                                   .streams = {""}});
          }
          plan.symbols = EncoderSymbols(lowered.module, 12);
          plan.modules.push_back(lowered.module);
          for (const LayerBlocks* piece :
               {&lowered.blocks.embedding, &lowered.blocks.layers.at('V'), &lowered.blocks.head}) {
            plan.blocks.push_back(piece->forward);
            if (piece->recompute) plan.blocks.push_back(*piece->recompute);
            if (piece->backward) plan.blocks.push_back(*piece->backward);
          }
          for (const Violation& violation : VerifyValues(plan)) {
            ADD_FAILURE() << "tp " << tp << " cp " << cp << " frozen " << frozen << ": " << violation.message;
          }
        }
      }
    }
  }
}

TEST(EncoderBlocks, OnOneRankNothingIsSent) {
  const Lowered lowered = Lower({});
  for (const LayerBlocks* piece : {&lowered.blocks.embedding, &lowered.layer(), &lowered.blocks.head}) {
    EXPECT_THAT(Messages(piece->forward), IsEmpty());
    EXPECT_THAT(Messages(*piece->backward), IsEmpty());
  }
  EXPECT_THAT(lowered.layer().forward.saved, ElementsAre("x", "image_grid", "n1", "n1_mean", "n1_scale", "qkv", "a",
                                                         "lse", "x1", "n2", "n2_mean", "n2_scale", "f", "g"));
  EXPECT_THAT(lowered.blocks.head.forward.saved,
              ElementsAre("image_grid", "xp", "fn_mean", "fn_scale", "ps", "n", "n_scale", "u", "r"));
}

TEST(EncoderBlocks, ContextParallelGathersKeysAndTheRowsOfTheBridge) {
  const Lowered lowered = Lower({.cp = 2});
  EXPECT_THAT(Messages(lowered.blocks.embedding.forward), IsEmpty());
  EXPECT_THAT(Messages(*lowered.blocks.embedding.backward), IsEmpty());
  EXPECT_THAT(Messages(lowered.layer().forward), ElementsAre("all_gather_v cp kv"));
  EXPECT_THAT(Messages(*lowered.layer().backward), ElementsAre("all_gather_v cp kv", "reduce_scatter_v cp dkv_part"));
  EXPECT_THAT(Messages(lowered.blocks.head.forward), ElementsAre("all_gather_v cp rows"));
  EXPECT_THAT(Messages(*lowered.blocks.head.backward), IsEmpty());  // the gradient comes whole; each part takes its own

  const Instruction& attention = The(lowered.layer().forward, OpKind::kPackedAttention);
  EXPECT_THAT(attention.inputs, ElementsAre("query", "kv_all", "image_grid"));
  EXPECT_EQ(attention.integer("cp"), 2);
  EXPECT_EQ(attention.integer("factor"), 2);
  const Output& rows = The(lowered.blocks.head.forward, OpKind::kAllGatherV).outputs.front();
  EXPECT_EQ(std::get<std::string>(rows.type.dims[0]), "images.image_rows");
  EXPECT_FALSE(rows.type.layout.contains(Axis::kCp));
  EXPECT_EQ(lowered.blocks.head.forward.inputs[0].type.layout.at(Axis::kCp),
            (AxisLayout{AxisLayout::State::kSharded, 0}));
  // The gathered keys are not kept from forward to backward.
  EXPECT_THAT(lowered.layer().forward.saved, ::testing::Not(::testing::Contains("kv_all")));
}

// Over cp each rank squares its own rows, before they are gathered; over tp all have the same rows.
TEST(EncoderBlocks, HeadSquaresEachRowOnce) {
  const Lowered lowered = Lower({.tp = 2, .cp = 2});
  const Block& head = lowered.blocks.head.forward;
  const Instruction& squares = The(head, OpKind::kSquareSum);
  EXPECT_THAT(squares.inputs, ElementsAre("rows"));
  for (const Output& sum : squares.outputs) EXPECT_EQ(sum.type.layout.at(Axis::kCp).state, AxisLayout::State::kPartial);
  std::vector<std::string> sums;
  for (const Instruction& op : head.body) {
    if (op.kind != OpKind::kAccumulate) continue;
    sums.push_back(op.text("into"));
    EXPECT_EQ(op.text("once_over"), "tp");
  }
  EXPECT_THAT(sums, ElementsAre("$reals.square_sum.images", "$integers.elements.images"));
}

TEST(EncoderBlocks, TensorAndContextParallelismTogether) {
  const Lowered lowered = Lower({.tp = 2, .cp = 2});
  EXPECT_THAT(Messages(lowered.layer().forward),
              ElementsAre("all_gather_v cp kv", "all_reduce tp p_part", "all_reduce tp q_part"));
  EXPECT_THAT(Messages(lowered.blocks.head.forward), ElementsAre("all_reduce tp rows_part", "all_gather_v cp rows"));
  EXPECT_THAT(Messages(*lowered.layer().backward),
              ElementsAre("all_reduce tp dn2_part", "all_gather_v cp kv", "reduce_scatter_v cp dkv_part",
                          "all_reduce tp dn1_part"));
  const Output& kv = The(lowered.layer().forward, OpKind::kAllGatherV).outputs.front();
  EXPECT_EQ(kv.type.layout, (Layout{{Axis::kTp, {AxisLayout::State::kSharded, 1}}}));
  EXPECT_EQ(kv.type.gradient->at(Axis::kCp).state, AxisLayout::State::kPartial);
}

// Only the projector learns; the encoder runs as in evaluation.
TEST(EncoderBlocks, AFrozenBackboneHasNoBackwardAndSavesNothing) {
  const Lowered lowered = Lower({.backbone = false});
  for (const LayerBlocks* piece : {&lowered.blocks.embedding, &lowered.layer()}) {
    EXPECT_FALSE(piece->backward);
    EXPECT_FALSE(piece->recompute);
    EXPECT_THAT(piece->forward.saved, IsEmpty());
  }
  const LayerBlocks& head = lowered.blocks.head;
  EXPECT_THAT(Gradients(head.backward), UnorderedElementsAre("proj_norm", "proj_up", "proj_down"));
  EXPECT_THAT(head.backward->outputs, IsEmpty());
  EXPECT_THAT(head.forward.saved, UnorderedElementsAre("ps", "n", "n_scale", "u", "r"));
  EXPECT_EQ(The(lowered.blocks.embedding.forward, OpKind::kPositionAndClass).integer("crop"), 0);
  EXPECT_EQ(The(Lower({}).blocks.embedding.forward, OpKind::kPositionAndClass).integer("crop"), 1);
}

TEST(EncoderBlocks, AFrozenProjectionPassesGradientsOn) {
  const Lowered lowered = Lower({.projection = false});
  const LayerBlocks& head = lowered.blocks.head;
  EXPECT_THAT(Gradients(head.backward), UnorderedElementsAre("final_norm_weight", "final_norm_bias"));
  EXPECT_THAT(head.backward->outputs, ElementsAre("dx"));
  // no weight gradients
  EXPECT_THAT(head.forward.saved,
              UnorderedElementsAre("image_grid", "xp", "fn_mean", "fn_scale", "ps", "n_scale", "u"));
  EXPECT_EQ(Gradients(lowered.layer().backward).size(), 12u);
}

TEST(EncoderBlocks, AFrozenEncoderHasNoBackwardAtAll) {
  const Lowered lowered = Lower({.backbone = false, .projection = false});
  for (const LayerBlocks* piece : {&lowered.blocks.embedding, &lowered.layer(), &lowered.blocks.head}) {
    EXPECT_FALSE(piece->backward);
    EXPECT_THAT(piece->forward.saved, IsEmpty());
  }
}

TEST(EncoderBlocks, RecomputeKeepsTheInputsOfALayer) {
  for (int cp : {1, 2}) {
    const Lowered plain = Lower({.cp = cp}), lowered = Lower({.cp = cp, .recompute = true});
    ASSERT_TRUE(lowered.layer().recompute);
    EXPECT_THAT(lowered.layer().forward.saved, ElementsAre("x", "image_grid"));
    EXPECT_EQ(std::set(lowered.layer().recompute->saved.begin(), lowered.layer().recompute->saved.end()),
              std::set(plain.layer().forward.saved.begin(), plain.layer().forward.saved.end()));
    EXPECT_FALSE(lowered.blocks.head.recompute);
    EXPECT_FALSE(lowered.blocks.embedding.recompute);
  }
}

// Deals bands as docs/operations.md says (deal_bands), for many sets of images: parts are runs of bands, no row is
// lost, and no part exceeds its declared maximum.
TEST(EncoderBlocks, PartsStayBelowTheirDeclaredMaxima) {
  const LocatedNumbers numbers = Model().numbers;  // 16 by 16 patches at most, squares of 2
  const Attributes constants = Lower({}).module.constants;
  uint64_t state = 1;
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>((state = state * 6364136223846793005 + 1442695040888963407) >> 33) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    const int cp = 2 + static_cast<int>(draw(7));
    std::vector<std::array<int64_t, 2>> grids(draw(6));
    int64_t lane_rows = 0, factor = SizeOf(numbers, "pixel_shuffle");
    for (auto& grid : grids) {
      grid = {factor * (1 + draw(8)), factor * (1 + draw(8))};
      lane_rows += grid[0] * grid[1] / (factor * factor);
    }
    Module module;
    module.name = "images";
    module.grid.cp = cp;
    module.constants = constants;
    const std::vector<Symbol> symbols = EncoderSymbols(module, std::max<int64_t>(lane_rows, 1));
    const auto most = [&](const std::string& name) {
      return std::find_if(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == name; })->maximum;
    };
    std::vector<int64_t> rows(cp, 0), tokens(cp, 0);
    int64_t a = 0, last = 0;
    for (const auto& grid : grids) {
      for (int64_t band = 0; band < grid[0] / factor; ++band) {
        const int64_t b = a + grid[1] / factor, part = cp * (a + b) / (2 * lane_rows);
        ASSERT_TRUE(last <= part && part < cp);
        rows[part] += b - a;
        tokens[part] += (b - a) * factor * factor + (band == 0 ? *SizeOf(numbers, "class_tokens") : 0);
        last = part;
        a = b;
      }
    }
    EXPECT_EQ(a, lane_rows);
    for (int part = 0; part < cp; ++part) {
      EXPECT_LE(rows[part], most("images.part_image_rows"));
      EXPECT_LE(tokens[part], most("images.tokens"));
      EXPECT_GE((rows[part] + 8) * cp, lane_rows);  // its share, less at most one band
    }
  }
}

}  // namespace
}  // namespace planwright
