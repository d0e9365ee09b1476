// The statements of models are sound, and the checker refuses what is not, rule by rule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "planner/plan/statement/parse_statement.h"
#include "planner/plan/statement/statement_problems.h"
#include "tests/plan/statement/notation_kind.h"

namespace planwright {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SoundStatement : public ::testing::TestWithParam<std::string> {};

TEST_P(SoundStatement, HasNoProblem) {
  EXPECT_EQ(ProblemsText(StatementProblems(testing::StatementNamed(GetParam()))), "");
}

// All kinds of this program, and one of these tests.
std::vector<std::string> SoundKinds() {
  std::vector<std::string> kinds = {"notation"};
  for (const ModelStatement& statement : BuiltInStatements()) kinds.push_back(statement.kind);
  return kinds;
}

INSTANTIATE_TEST_SUITE_P(Statements, SoundStatement, ::testing::ValuesIn(SoundKinds()),
                         [](const auto& info) { return info.param; });

// One thing that is wrong, and what is said about it.
struct Broken {
  const char* name;
  const char* kind;
  std::function<void(ModelStatement&)> damage;
  const char* problem;

  friend void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.name; }
};

StatedWeight& Weight(StatedPiece& piece, const std::string& slot) {
  for (StatedWeight& weight : piece.weights) {
    if (weight.slot == slot) return weight;
  }
  throw std::out_of_range("no weight in slot " + slot);
}

StatedCompute& Making(StatedPiece& piece, const std::string& output) {
  for (StatedCompute& compute : piece.computes) {
    if (!compute.outputs.empty() && compute.outputs.front() == output) return compute;
  }
  throw std::out_of_range("no compute makes " + output);
}

StatedPiece& Mamba(ModelStatement& s) { return s.layers.at('M'); }
StatedPiece& Attention(ModelStatement& s) { return s.layers.at('*'); }
StatedPiece& Mlp(ModelStatement& s) { return s.layers.at('-'); }
StatedPiece& Moe(ModelStatement& s) { return s.layers.at('E'); }
StatedPiece& Encoder(ModelStatement& s) { return s.layers.at('V'); }

void SetFormula(StatedCompute& compute, const char* formula) {
  compute.settings.front().text = formula;
  compute.settings.front().formula = *Expression::Parse(formula);
}

void Erase(StatedPiece& piece, const std::string& output) {
  std::erase_if(piece.computes, [&](const StatedCompute& compute) {
    return !compute.outputs.empty() && compute.outputs.front() == output;
  });
}

// Removes the line that needs that axes divide this constant.
void DropCut(StatedPiece& piece, const std::string& constant) {
  std::erase_if(piece.needs,
                [&](const StatedNeed& need) { return !need.axes.empty() && need.left.text() == constant; });
}

const Broken kBroken[] = {
    {"a_slot_that_nothing_reads", "hybrid_lm",
     [](auto& s) { Moe(s).weights.push_back(Weight(Moe(s), "norm")), Moe(s).weights.back().slot = "norm2"; },
     "piece E: slot norm2 is read 0 times"},
    {"a_slot_read_twice", "hybrid_lm", [](auto& s) { Making(Mamba(s), "yn").slots = {"D"}; }, "piece M: "},
    {"one_slot_for_two_norms", "radio_vit",
     [](auto& s) { Making(Encoder(s), "n2").slots = Making(Encoder(s), "n1").slots; },
     "piece V: slot norm1_weight is read 2 times"},
    {"a_slot_that_is_not_there", "hybrid_lm", [](auto& s) { Making(Mamba(s), "o").slots = {"o_proj"}; },
     "reads slot o_proj, which is not there"},
    {"a_slot_of_two_weights", "hybrid_lm", [](auto& s) { Weight(Moe(s), "shared_up").slot = "gate"; },
     "piece E: slot gate is there twice"},
    {"a_value_that_nothing_reads", "hybrid_lm",
     [](auto& s) {
       Making(Moe(s), "x_out").inputs = {"x", "y"};
     },
     "piece E: makes s, which nothing reads"},
    {"a_value_that_is_not_there", "hybrid_lm", [](auto& s) { Erase(Mamba(s), "xbc"); },
     "reads xbc, which is not there"},
    {"a_value_made_twice", "hybrid_lm", [](auto& s) { Making(Moe(s), "s_act").outputs = {"s_pre"}; },
     "piece E: makes s_pre twice"},
    {"an_input_that_nothing_reads", "hybrid_lm", [](auto& s) { Attention(s).inputs.push_back("tokens"); },
     "piece *: nothing reads the input tokens"},
    {"a_result_that_is_not_there", "hybrid_lm", [](auto& s) { Attention(s).outputs = {"y"}; },
     "piece *: returns y, which is not there"},
    {"a_layer_that_ends_the_stream", "hybrid_lm",
     [](auto& s) {
       Attention(s).outputs = {"x_out", "a"};
     },
     "piece * does not return the stream"},
    {"an_input_too_few", "hybrid_lm", [](auto& s) { Making(Mamba(s), "y").inputs = {"xbc"}; }, "has 1 inputs, not 3"},
    {"an_output_too_many", "hybrid_lm", [](auto& s) { Making(Mamba(s), "o").outputs.push_back("more"); },
     "has 2 outputs, not 1"},
    {"inputs_in_another_order", "hybrid_lm",
     [](auto& s) { std::swap(Making(Mamba(s), "y").inputs[0], Making(Mamba(s), "y").inputs[1]); },
     "piece M: mamba_scan of zxbcdt, xbc"},
    {"a_matrix_the_other_way", "hybrid_lm",
     [](auto& s) {
       auto& w = Weight(Mamba(s), "out_proj");
       std::swap(w.shape[0], w.shape[1]);
     },
     "piece M: linear of yn with out_proj reads out_proj"},
    {"a_weight_of_another_size", "radio_vit",
     [](auto& s) { Weight(Encoder(s), "fc1_bias").shape = {*Expression::Parse("hidden")}; },
     "piece V: linear of n2 with fc1_weight, fc1_bias reads fc1_bias"},
    {"a_size_without_a_value", "hybrid_lm",
     [](auto& s) { Weight(Moe(s), "gate").shape[0] = *Expression::Parse("moe.exports"); },
     "hybrid_lm.model:140:3: \"moe.exports\" is no constant, no axis and no number of the model; did you mean "
     "`moe.experts`?"},
    {"segments_in_another_order", "hybrid_lm",
     [](auto& s) {
       auto& w = Weight(Mamba(s), "in_proj");
       std::swap(w.segments[1], w.segments[2]);
     },
     "reads zxbcdt in parts"},
    {"segments_of_a_convolution", "hybrid_lm",
     [](auto& s) {
       auto& w = Weight(Mamba(s), "conv_weight");
       std::swap(w.segments[0], w.segments[1]);
     },
     "piece M: mamba_conv reads a weight in segments"},
    {"segments_that_are_missing", "radio_vit", [](auto& s) { Weight(Encoder(s), "qkv_weight").segments.clear(); },
     "piece V: "},
    {"joined_weights_in_another_order", "hybrid_lm",
     [](auto& s) {
       auto& w = Attention(s).weights;
       std::swap(w[1].shape, w[2].shape);
     },
     "piece *: causal_attention reads qkv in parts"},
    {"a_buffer_joined_to_weights", "hybrid_lm",
     [](auto& s) { Attention(s).weights[3].form = StatedWeight::Form::kBuffer; },
     "piece *: weight mixer.v_proj.weight is joined to a weight of another form"},
    {"segments_of_another_sum", "hybrid_lm", [](auto& s) { Weight(Mamba(s), "in_proj").segments.pop_back(); },
     "of another sum"},
    {"a_cut_that_must_not_be", "radio_vit", [](auto& s) { Weight(Encoder(s), "norm1_weight").cut = 0; },
     "piece V: layer_norm reads a weight that is cut along H, which must be whole"},
    {"a_cut_of_one_weight_of_two", "hybrid_lm", [](auto& s) { Weight(Mamba(s), "A_log").cut = -1; },
     "piece M: mamba_scan reads weights of which some are cut and some are whole"},
    {"a_vocabulary_that_is_whole", "hybrid_lm",
     [](auto& s) { Weight(s.embed, "embeddings").cut = -1, Weight(s.embed, "embeddings").padded = false; },
     "piece embed: embed_tokens reads weights of which some are cut and some are whole"},
    {"a_cut_that_nothing_needs_to_divide", "hybrid_lm", [](auto& s) { DropCut(Attention(s), "attention.kv_groups"); },
     "and no line needs that tp divides it"},
    {"experts_that_ep_need_not_divide", "hybrid_lm", [](auto& s) { DropCut(Moe(s), "moe.experts"); },
     "no line needs that ep divides it"},
    {"heads_that_tp_need_not_divide", "radio_vit", [](auto& s) { DropCut(Encoder(s), "heads"); },
     "and no line needs that axes divide heads"},
    {"a_vocabulary_that_nothing_divides", "hybrid_lm", [](auto& s) { Weight(s.head, "lm_head").padded = false; },
     "piece head: weight lm_head.weight is cut, and no line needs that tp divides it"},
    {"padding_where_tp_divides", "hybrid_lm", [](auto& s) { Weight(Moe(s), "shared_up").padded = true; },
     "is padded, though a line needs that tp divides it"},
    {"padding_of_what_is_whole", "hybrid_lm", [](auto& s) { Weight(Moe(s), "gate").padded = true; },
     "piece E: weight mixer.gate.weight is padded, and not cut along dim 0"},
    {"values_joined_to_no_keys", "hybrid_lm",
     [](auto& s) {
       auto& w = Attention(s).weights;
       std::swap(w[3], w[4]);
     },
     "piece *: weight mixer.v_proj.weight is joined, and the line before it is of another slot"},
    {"keys_that_are_cut_apart_from_values", "hybrid_lm", [](auto& s) { Weight(Attention(s), "kv").cut = 0; },
     "piece *: weight mixer.v_proj.weight is joined, and not cut as what it is joined to"},
    {"a_weight_that_is_always_there", "hybrid_lm", [](auto& s) { Weight(Attention(s), "kv").when.reset(); },
     "piece *: slot kv is read 0 times"},
    {"a_probe_of_nothing", "hybrid_lm", [](auto& s) { Moe(s).probes.front().value = "scores"; },
     "piece E: probes scores, which is not there"},
    {"a_probe_where_its_value_is_not", "radio_vit", [](auto& s) { s.head.probes.front().when.reset(); },
     "piece head: probes fn, which is not there"},
    {"a_weight_where_nothing_reads_it", "radio_vit", [](auto& s) { Weight(s.head, "final_norm_bias").when.reset(); },
     "piece head: slot final_norm_bias is read 0 times"},
    {"a_weight_that_is_not_there_where_it_is_read", "radio_vit", [](auto& s) { Making(s.head, "fn").when.reset(); },
     "piece head: layer_norm of xp with final_norm_weight, final_norm_bias reads slot final_norm_weight"},
    {"a_weight_that_is_there_only_if_it_is_trained", "radio_vit",
     [](auto& s) { Weight(s.head, "final_norm_bias").when = *Expression::Parse("trains_backbone"); },
     "piece head: weight final_norm.bias has a condition of trains_backbone, which is no constant and no axis"},
    {"a_value_of_one_case_alone", "radio_vit",
     [](auto& s) { std::erase_if(s.head.computes, [](const auto& c) { return c.inputs.front() == "fn"; }); },
     "piece head: rms_norm of ps with proj_norm reads ps, which is not there"},
    {"a_value_of_both_cases", "radio_vit", [](auto& s) { Making(s.head, "ps").when.reset(); },
     "piece head: makes ps twice"},
    {"a_width_that_tp_need_not_divide", "hybrid_lm", [](auto& s) { DropCut(Mlp(s), "mlp.ffn"); },
     "piece -: weight mixer.up_proj.weight is cut, and no line needs that tp divides it"},
    {"a_need_of_nothing", "hybrid_lm", [](auto& s) { Moe(s).needs.front().right = *Expression::Parse("moe.exports"); },
     "hybrid_lm.model:146:3: \"moe.exports\" is no constant"},
    {"a_bias_in_a_sum", "radio_vit",
     [](auto& s) {
       Weight(Encoder(s), "fc1_weight").cut = 1;
       Weight(Encoder(s), "fc1_bias").cut = -1;
     },
     "has a bias, which each rank would add"},
    {"slots_of_one_size_exchanged", "hybrid_lm",
     [](auto& s) { std::swap(Weight(Mamba(s), "A_log").name, Weight(Mamba(s), "D").name); },
     "piece M: mamba_scan reads mixer.D as its A_log"},
    {"a_projection_of_a_language_model", "hybrid_lm", [](auto& s) { Weight(s.head, "lm_head").projection = true; },
     "weight lm_head.weight is of a projection, which only an encoder has"},
    {"one_name_for_two_weights", "hybrid_lm",
     [](auto& s) { Attention(s).weights[2].name = Attention(s).weights[1].name; },
     "two weights are published as language_model.backbone.layers.0.mixer.q_proj.weight"},
    {"one_name_for_two_layers", "radio_vit", [](auto& s) { Encoder(s).prefix = "radio_model.model.blocks.0."; },
     "two weights are published as vision_model.radio_model.model.blocks.0.attn.proj.bias"},
    {"a_number_there_twice", "hybrid_lm", [](auto& s) { s.lets.push_back(s.lets.back()); },
     "number conv_bound is there twice"},
    {"a_draw_without_its_number", "hybrid_lm", [](auto& s) { Weight(s.head, "lm_head").numbers.clear(); },
     "weight lm_head.weight has a draw with another number of numbers"},
    {"a_draw_of_no_value", "hybrid_lm",
     [](auto& s) { Weight(s.head, "lm_head").numbers = {*Expression::Parse("init_dev")}; },
     "hybrid_lm.model:204:3: \"init_dev\" is no constant"},
    {"a_setting_of_another_kind", "hybrid_lm",
     [](auto& s) {
       Making(Mamba(s), "o").settings = {{"eps", "norm_eps"}};
     },
     "piece M: linear has no eps norm_eps"},
    {"a_setting_of_another_constant", "hybrid_lm",
     [](auto& s) {
       Making(Mamba(s), "yn").settings = {{"eps", "init_std"}};
     },
     "piece M: gated_norm has no eps init_std"},
    {"a_kind_of_layers_of_no_table", "hybrid_lm", [](auto& s) { s.layers['G'] = s.layers.at('-'); },
     "no kind of layers has the letter G"},
    {"rows_of_no_name", "radio_vit", [](auto& s) { s.gathered.clear(); },
     "no line `gathered` names the tokens of all ranks"},
    {"a_branch_without_a_gradient", "hybrid_lm",
     [](auto& s) {
       Making(Moe(s), "x_out").inputs = {"x", "y"};
       Moe(s).probes.front().value = "s", Moe(s).counts = "s";
     },
     "piece E: slot shared_down gets no gradient"},
    {"a_value_of_each_encoder", "hybrid_lm", [](auto& s) { Making(Mamba(s), "n").each = true; },
     "piece M: the value n is made for each encoder, and is read where there is none"},
    {"a_mark_where_the_slot_is_always_there", "radio_vit",
     [](auto& s) {
       Making(Encoder(s), "qkv").slots = {"qkv_weight", "qkv_bias?"};
     },
     "piece V: the slot qkv_bias is there wherever the line is, and has no mark (from line"},
    {"a_mark_where_slot_and_line_have_one_condition", "radio_vit",
     [](auto& s) {
       Weight(Encoder(s), "qkv_bias").when = Making(Encoder(s), "qkv").when = *Expression::Parse("erf_gelu");
       Making(Encoder(s), "qkv").slots.back() += "?";
     },
     "piece V: the slot qkv_bias is there wherever the line is, and has no mark (from line"},
    {"a_mark_of_what_is_always_read", "radio_vit", [](auto& s) { Making(s.head, "fn").slots[1] += "?"; },
     "piece head: layer_norm always reads a slot in place of final_norm_bias?"},
    {"a_mark_that_is_not_last", "radio_vit",
     [](auto& s) {
       Making(Encoder(s), "qkv").slots = {"qkv_weight?", "qkv_bias"};
     },
     "piece V: the slot qkv_weight? is not the last one of its line"},
    {"a_mark_of_no_weight", "radio_vit",
     [](auto& s) {
       Making(Encoder(s), "qkv").slots = {"qkv_weight", "qkv_bia?"};
     },
     "piece V: no weight is in the slot qkv_bia; did you mean `qkv_bias`?"},
    {"a_bias_that_is_not_always_there_without_a_mark", "radio_vit",
     [](auto& s) { Weight(Encoder(s), "qkv_bias").when = *Expression::Parse("erf_gelu"); },
     "reads slot qkv_bias, which is not there (from line"},
    {"a_bias_of_a_sum_that_is_not_always_there", "radio_vit",
     [](auto& s) {
       Weight(Encoder(s), "fc1_weight").cut = 1;
       Weight(Encoder(s), "fc1_bias").cut = -1, Weight(Encoder(s), "fc1_bias").when = *Expression::Parse("erf_gelu");
       Making(Encoder(s), "f").slots[1] += "?";
     },
     "has a bias, which each rank would add"},
    {"more_constants_than_are_tried", "radio_vit",
     [](auto& s) {
       for (auto& constant : s.constants) constant.or_zero = true;
       Weight(s.head, "proj_norm").when = *Expression::Parse("hidden + heads + ffn + patch + max_image");
     },
     "at most 6 constants may be flags"},
    {"a_formula_of_no_value_of_ops_def", "notation", [](auto& s) { SetFormula(Making(Encoder(s), "n"), "(init_std)"); },
     "piece V: rms_norm has no eps (init_std)"},
    {"a_formula_of_no_number", "notation", [](auto& s) { SetFormula(Making(Encoder(s), "g"), "(exat)"); },
     "\"exat\" is no constant, no axis and no number of the model; did you mean `exact`?"},
    {"a_stated_number_that_is_no_integer", "notation",
     [](auto& s) { SetFormula(Making(Encoder(s), "g"), "(norm_eps)"); }, "piece V: gelu has erf (norm_eps), which is "},
    {"a_stated_number_below_0", "notation", [](auto& s) { SetFormula(Making(Encoder(s), "g"), "(0 - rough)"); },
     "piece V: gelu has erf (0 - rough), which is -1 on some layout"},
    {"a_setting_that_is_there_twice", "notation",
     [](auto& s) {
       auto& settings = Making(Encoder(s), "g").settings;
       settings.push_back(settings.front());
     },
     "piece V: erf is set twice"},
    {"a_formula_of_a_text", "radio_vit",
     [](auto& s) {
       for (StatedCompute& compute : s.head.computes) {
         if (compute.kind == OpKind::kAccumulate) SetFormula(compute, "(1)");
       }
     },
     "piece head: into of accumulate is no number of the model, and has no formula"},
    {"a_place_that_is_not_known", "notation", [](auto& s) { Encoder(s).prefix = "blocks.{blok}."; },
     "piece V: the prefix has {blok}, and only {layer}, {block} and {tap} are known here"},
    {"a_place_of_no_layer", "notation", [](auto& s) { s.head.prefix = "head.{layer}."; },
     "piece head: the prefix has {layer}, and there is no layer here"},
    {"one_name_for_two_probes", "notation",
     [](auto& s) { Encoder(s).probes.front().name = "notation.block{block}.norm"; },
     "two values are probed as notation.block0.norm"},
    {"one_name_for_layers_of_two_kinds", "notation",
     [](auto& s) {
       Encoder(s).prefix = s.layers.at('A').prefix = "blocks.{block}.";
       Weight(s.layers.at('A'), "norm").name = "norm.weight";
     },
     "two weights are published as blocks.0.norm.weight"},
    {"a_buffer_that_is_trained", "hybrid_lm",
     [](auto& s) { Weight(Moe(s), "gate_bias").form = StatedWeight::Form::kWeight; },
     "piece E: route gives slot gate_bias no gradient"},
    {"a_backward", "hybrid_lm", [](auto& s) { Making(Mlp(s), "r").kind = OpKind::kSquaredReluGrad; },
     "piece -: squared_relu_grad is a backward"},
    {"a_communication", "hybrid_lm", [](auto& s) { Making(Mlp(s), "r").kind = OpKind::kAllReduce; },
     "piece -: all_reduce comes of the layout"},
    {"an_order_that_lacks_a_compute", "hybrid_lm",
     [](auto& s) { Moe(s).overlap_forward.erase(Moe(s).overlap_forward.begin()); },
     "piece E: the order of the forward has no rms_norm.n"},
    {"an_order_that_reads_too_early", "hybrid_lm",
     [](auto& s) { std::swap(Moe(s).overlap_forward.front(), Moe(s).overlap_forward.back()); },
     "piece E: the order of the forward reads n before it is made"},
    {"parts_that_no_line_names", "hybrid_lm", [](auto& s) { Attention(s).parts.clear(); },
     "piece *: with cp causal_attention reads qkv in 2 parts, which a line split must name"},
    {"experts_that_nothing_counts", "hybrid_lm", [](auto& s) { Moe(s).counts.clear(); },
     "reads rows of experts, and the piece has no line counts"},
    {"counts_of_nothing", "radio_vit", [](auto& s) { Encoder(s).counts = "counts"; },
     "piece V: counts counts, which the piece does not make"},
    {"an_encoders_rows_read_once", "hybrid_lm", [](auto& s) { Making(s.embed, "x").inputs = {"rows*"}; },
     "piece embed: embed_tokens reads rows* of each encoder, and does not begin with each"},
    {"a_setting_that_is_missing", "hybrid_lm", [](auto& s) { Making(Mlp(s), "n").settings.clear(); },
     "piece -: rms_norm needs eps, which the line must set"},
    {"a_constant_that_an_operation_needs", "hybrid_lm",
     [](auto& s) { std::erase_if(s.constants, [](const auto& c) { return c.name == "mamba.chunk"; }); },
     "piece M: mamba_scan needs chunk = mamba.chunk, and not each module with this piece has the number mamba.chunk"},
    {"a_constant_of_other_layers", "hybrid_lm",
     [](auto& s) { Weight(Mlp(s), "up").shape[0] = *Expression::Parse("moe.ffn"); },
     "\"moe.ffn\" has no value in a module without layers E"},
    {"needs_that_no_sizes_keep", "radio_vit",
     [](auto& s) { Encoder(s).needs.front().left = *Expression::Parse("2 * hidden - 2 * hidden + 1"); },
     "no sizes were found that keep this line"},
    {"an_order_of_no_value", "hybrid_lm", [](auto& s) { Moe(s).overlap_backward.front() += ".aux_couts"; },
     "but the piece has no value aux_couts; did you mean `aux_counts`?"},
    {"rows_of_experts_of_no_name", "hybrid_lm", [](auto& s) { s.gathered.clear(); },
     "piece E: no line `gathered` names the expert_rows of all ranks, which select_rows makes"},
    {"returned_rows_of_no_name", "radio_vit", [](auto& s) { s.gathered.pop_back(); },
     "piece head: no line `gathered` names the part_image_rows of all ranks, which pixel_shuffle makes"},
    {"an_input_that_one_rank_does_not_read", "hybrid_lm",
     [](auto& s) { Moe(s).computes.at(12).inputs.back() = "cuonts"; },
     "reads cuonts, which is not there; did you mean `counts`?"},
    {"bands_on_one_rank", "radio_vit", [](auto& s) { Making(Encoder(s), "token_counts").when.reset(); },
     "piece V: deal_bands makes C = cp, which it has where cp > 1, and the line is there without it"},
    {"an_input_without_a_shape", "radio_vit", [](auto& s) { s.given.erase("image_ids"); },
     "piece embed: input image_ids has no line given"},
};

// A line that cannot be read hides neither the other lines nor what is wrong with other pieces.
TEST(StatementProblems, AreToldOfWhatCouldBeRead) {
  const std::string text = R"(kind some_lm
layer M mixer: mixer
layer E experts: experts
layer - mlp: MLP
layers pattern: a letter for each layer
constant hidden int: width of the stream
constant ffn int: width inside the MLP
constant depth int of M given
let wide = 2 * ffn
stream [sequence, samples, hidden] cut 0 over cp
piece embed
  inputs x
  outputs x
piece M
  prefix layers.{layer}.
  inputs x
  weight up up.weight [wide, hiden] cut 0 normal [1]
  u = linear x [upp]
  x_out = linear u [up] bias depth
  outputs x_out
piece -
  prefix layers.{layer}.
  inputs x
  weight down down.weight [hidden, hidden] ones
  d = linera x [down]
  outputs d
piece E
  prefix layers.{layer}.
  inputs x rows*
  weight down down.weight [hidden, depth] ones
  y = concat x x
  z = add x rows*
  outputs y
piece head
  inputs x
  weight norm norm.weight [wide] ones
  n scale = rms_norm x [norm] eps norm_epsilon
  outputs n
)";
  const ParsedStatement parsed = ParseStatement("f", text);
  EXPECT_EQ(ProblemsText(parsed.problems), "f:25:7: \"linera\" is no operation; did you mean `linear`?\n");
  EXPECT_EQ(ProblemsText(StatementProblems(parsed.statement)),
            R"(f:17:30: "hiden" is no constant, no axis and no number of the model; did you mean `hidden`?
f:19:25: piece M: linear has no bias depth
f:30:36: "depth" has no value in a module without layers M
f:31:7: piece E: concat comes of the layout or of the step, and is no compute of a model
f:32:13: piece E: add reads rows* of each encoder, and does not begin with each
f:37:25: piece head: rms_norm of x with norm reads norm [34], of another H (from line 36)
f:37:35: piece head: rms_norm has no eps norm_epsilon, which is no constant of each module with this piece
)");
}

// The language model with other letters: layers of one kind have that of the other, and the other way round.
ModelStatement WithLetters(char one, char other) {
  ModelStatement statement = *StatementOf("hybrid_lm");
  std::swap(statement.layers.at(one), statement.layers.at(other));
  const auto swap = [&](char& letter) {
    if (letter == one || letter == other) letter = letter == one ? other : one;
  };
  for (StatedConstant& constant : statement.constants) swap(constant.of);
  for (StatedKey& key : statement.keys) swap(key.of);
  for (StatedLayer& layer : statement.layer_kinds) swap(layer.letter);
  return statement;
}

// What a letter means is said by the pieces.
TEST(StatementProblems, LettersBelongToTheKind) {
  ModelStatement swapped = WithLetters('*', '-');
  EXPECT_EQ(ProblemsText(StatementProblems(swapped)), "");
  Erase(swapped.layers.at('-'), "kv");
  EXPECT_THAT(ProblemsText(StatementProblems(swapped)),
              HasSubstr("piece -: causal_attention_all_kv of q, kv, document_ends? reads kv, which is not there"));
  EXPECT_TRUE(StatementOf("hybrid_lm")->HasExperts('E'));
  EXPECT_FALSE(StatementOf("hybrid_lm")->HasExperts('-'));
  EXPECT_FALSE(StatementOf("hybrid_lm")->HasExperts('|')) << "no layer";
  EXPECT_TRUE(WithLetters('E', '-').HasExperts('-'));
  EXPECT_FALSE(WithLetters('E', '-').HasExperts('E'));
}

class BrokenStatement : public ::testing::TestWithParam<Broken> {};

TEST_P(BrokenStatement, IsRefused) {
  ModelStatement statement = testing::StatementNamed(GetParam().kind);
  GetParam().damage(statement);
  EXPECT_THAT(ProblemsText(StatementProblems(statement)), HasSubstr(GetParam().problem));
}

INSTANTIATE_TEST_SUITE_P(Rules, BrokenStatement, ::testing::ValuesIn(kBroken),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright
