// The language model's blocks in every layout, with one axis and with several. They keep the rules of values, the types
// on a rank are parts of those on a single rank, and blocks communicate what the layout needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/compile/model/expand_model.h"
#include "planner/compile/schedule/blocks/lower_stage.h"
#include "planner/compile/schedule/derive/derive_module.h"
#include "planner/compile/schedule/programs/module_symbols.h"
#include "planner/verify/rules.h"
#include "tests/compile/schedule/block_queries.h"
#include "tests/compile/stages_of.h"
#include "tests/support/recipes.h"

namespace planwright {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::The;

struct Layouts {
  int tp = 1, cp = 1, ep = 1, expert_tp = 1;
  bool images = true, documents = false, frozen = false, gathers = false;

  std::string Name() const {
    std::string name = "tp" + std::to_string(tp) + "_cp" + std::to_string(cp) + "_ep" + std::to_string(ep) +
                       "_expert_tp" + std::to_string(expert_tp);
    if (!images) name += "_text";
    if (documents) name += "_documents";
    if (frozen) name += "_frozen";
    if (gathers) name += "_gathers";
    return name;
  }
  friend void PrintTo(const Layouts& layouts, std::ostream* out) { *out << layouts.Name(); }
};

ModelRecipe Model() {
  ModelRecipe model = testing::TinyRecipe({}).modules[1].model;
  Give(model, {{"mamba.groups", 4}});
  model.pattern = std::string("ME*");
  return model;
}

// A plan with blocks and without programs: the rules of values read no more.
Plan Lower(const Layouts& layouts) {
  Plan plan;
  ModuleRecipe recipe = testing::TinyRecipe({}).modules[1];
  recipe.model = Model();
  recipe.train_backbone = std::string(layouts.frozen ? "frozen" : "trained");
  Grid grid;
  grid.tp = layouts.tp, grid.cp = layouts.cp, grid.ep = layouts.ep, grid.expert_tp = layouts.expert_tp;
  Module& module = plan.modules.emplace_back(ExpandModule(recipe, grid, testing::StagesOf(recipe), {}, 48, {}));
  if (layouts.gathers) module.dispatch = "all_gather";
  plan.precision = "fp64";
  plan.budget.sequence_length = 48;
  plan.budget.micro_samples = layouts.documents ? 1 : 2;
  plan.data.image_token = 5;
  plan.data.packed_documents = layouts.documents;
  using enum Axis;
  const auto group = [&](const char* name, View view, std::vector<Axis> axes) {
    plan.groups.push_back({.name = std::string("language.") + name,
                           .short_name = name,
                           .module = "language",
                           .view = view,
                           .axes = std::move(axes),
                           .streams = {""}});
  };
  group("tp", View::kDense, {kTp});
  group("cp", View::kDense, {kCp});
  group("tp_cp", View::kDense, {kTp, kCp});
  group("ep", View::kExpert, {kEp});
  group("ep_tp", View::kExpert, {kExpertTp});
  // The encoder that feeds it, which learns.
  std::vector<Module> modules = {module, {.name = "images"}};
  std::vector<Bridge> bridges;
  if (layouts.images) bridges.push_back({.name = "images.language", .from = "images", .to = "language", .token = 5});
  const BlockInputs inputs = {modules, bridges, plan.budget, plan.data, DType::kFp64};
  plan.symbols = SymbolsOf(inputs, module);
  const ModuleBlocks blocks = DeriveModule(inputs, module, *StatementOf(module.kind), false);
  const auto add = [&](const LayerBlocks& layer) {
    plan.blocks.push_back(layer.forward);
    if (layer.backward) plan.blocks.push_back(*layer.backward);
  };
  add(blocks.embedding);
  for (const auto& [kind, layer] : blocks.layers) add(layer);
  add(blocks.head);
  // Calls say which storages the blocks read.
  const StageBlocks stage = LowerStage(module, blocks, 0, false);
  plan.blocks.push_back(stage.forward);
  if (stage.backward) plan.blocks.push_back(*stage.backward);
  return plan;
}

const Block& Named(const Plan& plan, const std::string& name) {
  const Block* block = plan.FindBlock("language." + name);
  EXPECT_NE(block, nullptr) << name;
  return *block;
}

// "all_gather tp n": kind, group and first operand of each communication.
std::vector<std::string> Messages(const Block& block) {
  std::vector<std::string> messages;
  for (const Instruction& i : block.body) {
    if (OpClassOf(i.kind) != OpClass::kCommunication) continue;
    messages.push_back(std::string(OpName(i.kind)) + " " + i.group.substr(i.group.find('.') + 1) + " " +
                       i.inputs.front());
  }
  return messages;
}

bool Has(const Block& block, OpKind kind) {
  return std::any_of(block.body.begin(), block.body.end(), [&](const Instruction& i) { return i.kind == kind; });
}

std::map<std::string, ValueType> Types(const Block& block) {
  std::map<std::string, ValueType> types;
  for (const Output& input : block.inputs) types[input.name] = input.type;
  for (const Instruction& i : block.body) {
    for (const Output& output : i.outputs) types[output.name] = output.type;
  }
  return types;
}

// The dims of the whole value of which each rank has a part.
std::vector<Dim> Whole(const ValueType& type, const Grid& grid) {
  std::vector<Dim> dims = type.dims;
  for (const auto& [axis, layout] : type.layout) {
    if (layout.state != AxisLayout::State::kSharded) continue;
    dims[layout.dim] = std::get<int64_t>(dims[layout.dim]) * grid.size(axis);
  }
  return dims;
}

class LanguageBlocks : public ::testing::TestWithParam<Layouts> {};

TEST_P(LanguageBlocks, KeepTheRulesOfValues) {
  for (const Violation& violation : VerifyValues(Lower(GetParam())))
    ADD_FAILURE() << violation.rule << ": " << violation.message;
}

// Expert rows belong to their rank: how many there are does not follow from the layout.
bool IsExpertRows(const std::string& value) {
  static const std::set<std::string> rows = {
      "rows",     "row_weights",     "order",        "out",     "out_in",         "pre",
      "dout",     "drows",           "drow_weights", "rows_in", "row_weights_in", "counts_in",
      "drows_in", "drow_weights_in", "dout_in"};
  return rows.contains(value);
}

TEST_P(LanguageBlocks, AreCutFromThoseOfOneRank) {
  Layouts one = GetParam();
  one.tp = one.cp = one.ep = one.expert_tp = 1;
  one.gathers = false;
  const Plan whole = Lower(one), cut = Lower(GetParam());
  ASSERT_EQ(whole.blocks.size(), cut.blocks.size());
  int compared = 0;
  for (size_t i = 0; i < whole.blocks.size(); ++i) {
    ASSERT_EQ(whole.blocks[i].name, cut.blocks[i].name);
    const bool experts = whole.blocks[i].name.starts_with("language.moe");
    const auto types = Types(whole.blocks[i]);
    for (const auto& [name, type] : Types(cut.blocks[i])) {
      if (!types.contains(name) || (experts && IsExpertRows(name))) continue;
      EXPECT_EQ(Whole(type, cut.modules[0].grid), types.at(name).dims) << whole.blocks[i].name << " " << name;
      EXPECT_EQ(type.dtype, types.at(name).dtype) << whole.blocks[i].name << " " << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 60);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, LanguageBlocks,
    ::testing::Values(Layouts{}, Layouts{.tp = 2}, Layouts{.cp = 2}, Layouts{.cp = 4}, Layouts{.tp = 2, .cp = 2},
                      Layouts{.tp = 2, .cp = 2, .ep = 4}, Layouts{.ep = 2, .expert_tp = 2},
                      Layouts{.tp = 2, .expert_tp = 2}, Layouts{.tp = 2, .cp = 2, .ep = 2, .expert_tp = 2},
                      Layouts{.images = false}, Layouts{.tp = 2, .cp = 2, .images = false}, Layouts{.documents = true},
                      Layouts{.tp = 2, .cp = 2, .ep = 4, .documents = true}, Layouts{.frozen = true},
                      Layouts{.tp = 2, .cp = 2, .ep = 2, .expert_tp = 2, .documents = true, .frozen = true},
                      Layouts{.ep = 2, .gathers = true}, Layouts{.tp = 2, .cp = 2, .ep = 4, .gathers = true},
                      Layouts{.tp = 2, .cp = 2, .ep = 2, .expert_tp = 2, .gathers = true},
                      Layouts{.tp = 2, .ep = 2, .frozen = true, .gathers = true}),
    [](const auto& info) { return info.param.Name(); });

// All tokens come, no row is sent, and terms of all tokens are summed. Weights and ids come beside the tokens.
TEST(GatheredDispatch, TokensComeAndTheirSumsGoBack) {
  const Plan plan = Lower({.tp = 2, .ep = 4, .expert_tp = 1, .gathers = true});
  const Block &forward = Named(plan, "moe.forward"), &backward = Named(plan, "moe.backward");
  EXPECT_THAT(Messages(forward),
              ElementsAre("all_gather tp n", "reduce_scatter tp s_part", "all_reduce tp aux_counts_part",
                          "all_to_all ep counts", "gather_tokens ep n", "gather_tokens ep weights",
                          "gather_tokens ep ids", "scatter_tokens ep y_all"));
  EXPECT_THAT(Messages(backward),
              ElementsAre("gather_tokens ep dx_out", "scatter_tokens ep dn_all", "scatter_tokens ep dweights_all",
                          "all_gather tp dx_out", "reduce_scatter tp dn_part"));
  // 24 positions of 2 samples on each of 4 ranks.
  const auto types = Types(forward);
  EXPECT_EQ(types.at("n_all").dims, (std::vector<Dim>{int64_t{96}, int64_t{2}, int64_t{32}}));
  EXPECT_EQ(types.at("ids_all").dims, (std::vector<Dim>{int64_t{192}, int64_t{3}}));
  EXPECT_EQ(types.at("rows_in").dims[0], Dim("language.expert_rows"));
  EXPECT_TRUE(types.at("n_all").layout.empty());
  EXPECT_EQ(types.at("y").layout, types.at("n").layout);
  EXPECT_EQ(The(forward, OpKind::kCombineRows).integer("sequence"), 96);
}

TEST(LanguageBlocks, OneRankSendsNothing) {
  for (const Block& block : Lower({}).blocks) EXPECT_THAT(Messages(block), IsEmpty()) << block.name;
}

// Which positions get image rows is known only at run time, so a merge reads all positions. A text needs no merge.
TEST(TensorParallel, AnEmbeddingWithoutImagesIsOneReduceScatter) {
  const Plan text = Lower({.tp = 2, .cp = 2, .images = false}), images = Lower({.tp = 2, .cp = 2});
  const Block& forward = Named(text, "embed.forward");
  EXPECT_THAT(Messages(forward), ElementsAre("reduce_scatter tp x_part"));
  EXPECT_EQ(The(forward, OpKind::kLocalSlice).text("axis"), "cp");
  EXPECT_EQ(Types(forward).at("x").layout, Types(Named(images, "embed.forward")).at("x_local").layout);
  EXPECT_THAT(Messages(Named(images, "embed.forward")), ElementsAre("all_reduce tp x_part"));
  EXPECT_THAT(Messages(Named(text, "embed.backward")), ElementsAre("all_gather tp dx"));
}

TEST(ContextParallel, AttentionGathersKeysAndSumsTheirGradients) {
  const Plan plan = Lower({.tp = 2, .cp = 2});
  const Block &forward = Named(plan, "attention.forward"), &backward = Named(plan, "attention.backward");
  EXPECT_THAT(Messages(forward), ElementsAre("all_gather tp n", "all_gather cp kv", "reduce_scatter tp o_part"));
  EXPECT_THAT(Messages(backward), ElementsAre("all_gather tp dx_out", "all_gather cp kv", "reduce_scatter cp dkv_part",
                                              "reduce_scatter tp dn_part"));
  const Instruction& attention = The(forward, OpKind::kCausalAttention);
  EXPECT_THAT(attention.inputs, ElementsAre("q", "kv_all"));
  EXPECT_EQ(attention.integer("cp"), 2);
  EXPECT_EQ(attention.integer("zigzag"), 1);
  const auto types = Types(forward);
  EXPECT_EQ(types.at("q").dims, (std::vector<Dim>{int64_t{24}, int64_t{2}, int64_t{16}}));
  EXPECT_EQ(types.at("kv_all").dims, (std::vector<Dim>{int64_t{48}, int64_t{2}, int64_t{16}}));
  EXPECT_FALSE(types.at("kv_all").layout.contains(Axis::kCp));
  EXPECT_EQ(types.at("kv_all").gradient->at(Axis::kCp).state, AxisLayout::State::kPartial);
  EXPECT_EQ(Types(backward).at("dkv_part").layout.at(Axis::kCp).state, AxisLayout::State::kPartial);
  EXPECT_EQ(Types(backward).at("dkv").layout, types.at("kv").layout);
  EXPECT_EQ(std::count(forward.saved.begin(), forward.saved.end(), "kv_all"), 0);
  for (const Instruction& i : backward.body) {
    if (i.group == "language.cp") {
      EXPECT_EQ(i.integer("zigzag"), 1);
    }
  }
}

TEST(ContextParallel, MambaTradesSequenceForHeads) {
  const Plan plan = Lower({.tp = 2, .cp = 2});
  const Block &forward = Named(plan, "mamba.forward"), &backward = Named(plan, "mamba.backward");
  EXPECT_THAT(Messages(forward),
              ElementsAre("all_gather tp n", "reshard cp zxbcdt_local", "reshard cp yn", "reduce_scatter tp o_part"));
  EXPECT_THAT(Messages(backward), ElementsAre("all_gather tp dx_out", "reshard cp dyn_local", "reshard cp dzxbcdt",
                                              "reduce_scatter tp dn_part"));
  const Instruction& there = The(forward, OpKind::kReshard);
  EXPECT_EQ(there.integer("from_dim"), 0);
  EXPECT_EQ(there.integer("to_dim"), 2);
  EXPECT_EQ(there.integer("zigzag_dim"), 0);
  // z | x | B | C | dt of one tp rank: 64/2 inner, 4*16/2 of B and C, 8/2 heads.
  EXPECT_EQ(std::get<std::vector<int64_t>>(there.attributes.at("segments")), (std::vector<int64_t>{32, 32, 32, 32, 4}));
  EXPECT_EQ(there.outputs[0].type.dims, (std::vector<Dim>{int64_t{48}, int64_t{2}, int64_t{66}}));
  EXPECT_EQ(there.outputs[0].type.layout.at(Axis::kCp), (AxisLayout{AxisLayout::State::kSharded, 2, false}));
  const Instruction& scan = The(forward, OpKind::kMambaScan);
  EXPECT_EQ(scan.integer("heads"), 2);
  EXPECT_EQ(scan.integer("groups"), 1);
  EXPECT_EQ(scan.integer("parameter_cp"), 2);
  EXPECT_EQ(The(forward, OpKind::kGatedNorm).integer("group_size"), 16);  // inner / groups, in every layout
  EXPECT_EQ(Types(backward).at("dzxbcdt_local").layout.at(Axis::kCp),
            (AxisLayout{AxisLayout::State::kSharded, 0, true}));
}

TEST(ContextParallel, EmbeddingTakesItsPositionsAndSumsTheRowsGradient) {
  const Plan plan = Lower({.tp = 2, .cp = 2});
  const Block &forward = Named(plan, "embed.forward"), &backward = Named(plan, "embed.backward");
  const Instruction& slice = The(forward, OpKind::kLocalSlice);
  EXPECT_THAT(slice.inputs, ElementsAre("tokens"));
  EXPECT_EQ(slice.text("axis"), "cp");
  EXPECT_EQ(slice.integer("dim"), 1);
  EXPECT_EQ(slice.integer("zigzag"), 1);
  EXPECT_THAT(The(forward, OpKind::kMergeImages).inputs, ElementsAre("x", "rows", "tokens"));
  EXPECT_THAT(Messages(backward), ElementsAre("all_gather tp dx", "all_reduce cp drows_part"));
  EXPECT_THAT(backward.outputs, ElementsAre("drows"));
  EXPECT_TRUE(Types(backward).at("drows").layout.empty());
  EXPECT_EQ(Types(forward).at("x_local").dims[0], Dim(int64_t{12}));
  EXPECT_EQ(Types(forward).at("x_local").layout, (Layout{{Axis::kTp, {AxisLayout::State::kSharded, 0}},
                                                         {Axis::kCp, {AxisLayout::State::kSharded, 0, true}}}));
}

TEST(ContextParallel, EachRankHasTheLossOfItsPositions) {
  const Plan plan = Lower({.tp = 2, .cp = 2});
  const Block& forward = Named(plan, "head.forward");
  EXPECT_EQ(The(forward, OpKind::kAccumulate).text("once_over"), "tp");
  EXPECT_EQ(Types(forward).at("loss").layout.at(Axis::kCp).state, AxisLayout::State::kPartial);
  EXPECT_THAT(The(forward, OpKind::kTokenLoss).inputs, ElementsAre("sums", "loss_mask_local"));
  EXPECT_THAT(Messages(forward), ElementsAre("all_gather tp n", "all_reduce tp m_part", "all_reduce tp sums_part"));
}

TEST(ContextParallel, TheRouterCountsTheWholeSequence) {
  const Plan plan = Lower({.tp = 2, .cp = 2, .ep = 4});
  const Block& forward = Named(plan, "moe.forward");
  EXPECT_THAT(Messages(forward), ::testing::Contains("all_reduce tp_cp aux_counts_part"));
  EXPECT_EQ(The(forward, OpKind::kSequenceAuxLoss).integer("sequence"), 48);
  EXPECT_EQ(The(forward, OpKind::kRoutingFingerprint).integer("cp"), 2);
  EXPECT_EQ(Messages(Named(Lower({.cp = 2}), "moe.forward")),
            (std::vector<std::string>{"all_reduce cp aux_counts_part"}));
}

TEST(ExpertTensorParallel, RowsAreGatheredAndTheirSumScattered) {
  const Plan plan = Lower({.tp = 2, .ep = 2, .expert_tp = 2});
  EXPECT_THAT(
      Messages(Named(plan, "moe.forward")),
      ElementsAre("all_gather tp n", "reduce_scatter tp s_part", "all_reduce tp aux_counts_part",
                  "all_to_all ep counts", "all_gather ep_tp counts_in", "all_to_all_v ep rows",
                  "all_to_all_v ep row_weights", "all_gather_v ep_tp rows_in", "all_gather_v ep_tp row_weights_in",
                  "reduce_scatter_v ep_tp out_part", "all_to_all_v ep out_in"));
  EXPECT_THAT(Messages(Named(plan, "moe.backward")),
              ElementsAre("all_to_all_v ep dout", "all_gather_v ep_tp dout_in", "reduce_scatter_v ep_tp drows_part",
                          "reduce_scatter_v ep_tp drow_weights_part", "all_to_all_v ep drows_in",
                          "all_to_all_v ep drow_weights_in", "all_gather tp dx_out", "reduce_scatter tp dn_part"));
  const auto types = Types(Named(plan, "moe.forward"));
  EXPECT_EQ(types.at("pre").dims, (std::vector<Dim>{std::string("language.expert_rows_gathered"), int64_t{12}}));
  EXPECT_EQ(types.at("out_part").layout.at(Axis::kExpertTp).state, AxisLayout::State::kPartial);
  EXPECT_EQ(types.at("rows_all").gradient->at(Axis::kExpertTp).state, AxisLayout::State::kPartial);
  EXPECT_EQ(types.at("counts_all").dims, (std::vector<Dim>{int64_t{4}, int64_t{4}}));
  EXPECT_TRUE(types.at("counts_all").host);
}

TEST(PackedDocuments, TheMixersStopWhereADocumentEnds) {
  const Plan plan = Lower({.cp = 2, .documents = true});
  for (const char* layer : {"mamba", "attention"}) {
    for (const char* pass : {".forward", ".backward"}) {
      const Block& block = Named(plan, std::string(layer) + pass);
      int mixing = 0;
      for (const Instruction& i : block.body) {
        const std::string name(OpName(i.kind));
        if (!name.starts_with("mamba_") && !name.starts_with("causal_attention")) continue;
        EXPECT_EQ(i.inputs.back(), "document_ends") << name;
        ++mixing;
      }
      EXPECT_EQ(mixing, std::string(layer) == "mamba" ? 2 : 1) << block.name;
    }
    EXPECT_EQ(Named(plan, std::string(layer) + ".forward").inputs.back().name, "document_ends");
  }
  EXPECT_EQ(Named(plan, "moe.forward").inputs.size(), 1u);
  EXPECT_THAT(VerifyValues(plan), IsEmpty());
}

TEST(FrozenLanguage, HandsGradientsOnAndLearnsNothing) {
  const Plan plan = Lower({.tp = 2, .frozen = true});
  for (const Block& block : plan.blocks) {
    for (const Instruction& i : block.body) EXPECT_THAT(i.gradients, IsEmpty()) << block.name << " " << OpName(i.kind);
    EXPECT_FALSE(Has(block, OpKind::kLinearWeightGrad)) << block.name;
  }
  EXPECT_THAT(Named(plan, "embed.backward").outputs, ElementsAre("drows"));
  EXPECT_FALSE(Has(Named(plan, "embed.backward"), OpKind::kEmbedTokensGrad));
  const Block& moe = Named(plan, "moe.forward");
  for (OpKind kind : {OpKind::kAccumulateCounts, OpKind::kSequenceAuxLoss})
    EXPECT_FALSE(Has(moe, kind)) << OpName(kind);
  EXPECT_TRUE(Has(moe, OpKind::kRoutingFingerprint));
  EXPECT_THAT(The(Named(plan, "moe.backward"), OpKind::kRouteGrad).inputs,
              ElementsAre("dweights", "n", "weights", "ids", "logits"));
  // The backward of a linear without weight gradients does not read the input.
  EXPECT_THAT(Named(plan, "attention.forward").saved, ElementsAre("x", "n_scale", "qkv", "a", "lse"));
}

TEST(FrozenLanguage, HasNoBackwardWhereNothingLearnsBehindIt) {
  const Plan plan = Lower({.tp = 2, .images = false, .frozen = true});
  EXPECT_EQ(plan.blocks.size(), 6u);  // and the forward of the stage
  for (const Block& block : plan.blocks) {
    EXPECT_TRUE(block.name.ends_with(".forward")) << block.name;
    EXPECT_THAT(block.saved, IsEmpty()) << block.name;
  }
  EXPECT_THAT(VerifyValues(plan), IsEmpty());
}

TEST(TrainedLanguage, SavesNothingThatItsBackwardDoesNotRead) {
  const Plan plan = Lower({});
  EXPECT_THAT(Named(plan, "embed.forward").saved, ElementsAre("tokens", "positions"));
  for (const char* layer : {"embed", "mamba", "attention", "moe", "head"}) {
    std::set<std::string> read;
    for (const Instruction& i : Named(plan, std::string(layer) + ".backward").body)
      read.insert(i.inputs.begin(), i.inputs.end());
    for (const std::string& saved : Named(plan, std::string(layer) + ".forward").saved)
      EXPECT_TRUE(read.contains(saved)) << layer << " " << saved;
  }
}

}  // namespace
}  // namespace planwright
