// Plans that gather tokens to the experts' ranks, damaged by hand so that shapes and names still fit: the wrong tokens,
// sums that are no sums, a kind of dispatch that blocks do not do. (mutants/ has the damage that any operation can
// take.) Each is refused, with a message that says what is wrong and a line of the recipe.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "planner/compile/schedule/blocks/block_builder.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using std::string;
using testing::CompiledFile;
using testing::EncoderOn;
using testing::Join;
using testing::LanguageOn;

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");
constexpr char kForward[] = "language.moe.forward", kBackward[] = "language.moe.backward";
const std::vector<string> kGathered = {"modules.language.parallel.dispatch=all_gather"};
// Without tp, cp and expert_tp no value of the layer has a layout, so that layouts refuse nothing.
const std::vector<string> kEp2 = Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2), kGathered);
const std::vector<string> kEp2Tp2ExpertTp2 =
    Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 2), Join(kGathered, testing::Parallel("language", {{"expert_tp", 2}})));

Block& BlockOf(Plan& plan, const string& name) {
  for (Block& block : plan.blocks) {
    if (block.name == name) return block;
  }
  throw std::runtime_error("no block " + name);
}

// The instruction that makes a value.
std::vector<Instruction>::iterator Maker(Block& block, const string& value) {
  for (auto op = block.body.begin(); op != block.body.end(); ++op) {
    for (const Output& output : op->outputs) {
      if (output.name == value) return op;
    }
  }
  throw std::runtime_error("nothing makes " + value);
}

ValueType& TypeOf(Block& block, const string& value) {
  for (Output& output : Maker(block, value)->outputs) {
    if (output.name == value) return output.type;
  }
  throw std::runtime_error("no value " + value);
}

// Adds a collective over ep behind the maker of its input. Its output has the type of `like`, and a name of its own.
void AddBehind(Block& block, OpKind kind, const string& input, const string& output, const string& like,
               const Attributes& attributes = {}) {
  Instruction op{.kind = kind, .inputs = {input}, .outputs = {{output, TypeOf(block, like)}}, .attributes = attributes};
  op.group = block.module + ".ep";
  op.origin = block.origin;
  block.body.insert(std::next(Maker(block, input)), op);
}

// The readers of `from` behind the maker of `to` read `to`.
void ReadInstead(Block& block, const string& from, const string& to) {
  for (auto op = std::next(Maker(block, to)); op != block.body.end(); ++op)
    std::replace(op->inputs.begin(), op->inputs.end(), from, to);
}

void Remove(Block& block, const string& value) { block.body.erase(Maker(block, value)); }

struct Damage {
  const char* name;
  const char* rule;
  const char* says;  // part of the first violation
  std::function<void(Plan&)> inflict;
  std::vector<string> overrides = kEp2;
  friend void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }
};

std::vector<Damage> Damages() {
  const auto forward = [](std::function<void(Block&)> change) {
    return [change](Plan& plan) { change(BlockOf(plan, kForward)); };
  };
  const auto backward = [](std::function<void(Block&)> change) {
    return [change](Plan& plan) { change(BlockOf(plan, kBackward)); };
  };
  return {
      // The field says another thing than the blocks do.
      {"gathers_though_it_says_send", "V11", "block language.moe.forward has a select_rows",
       [](Plan& p) { p.modules[1].dispatch = "all_to_all"; }},
      {"sends_though_it_says_gather", "V11", "block language.moe.forward has a permute_rows",
       [](Plan& p) { p.modules[1].dispatch = "all_gather"; }, Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2))},
      {"blocks_of_another_plan", "V11", "has a permute_rows",
       [](Plan& p) {
         Plan other = CompiledFile(kTiny, Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2)));
         for (const char* name : {kForward, kBackward}) BlockOf(p, name) = BlockOf(other, name);
       }},
      {"no_kind_of_dispatch", "V11", "has dispatch nothing, not all_to_all or all_gather, with ep 2",
       [](Plan& p) { p.modules[1].dispatch = ""; }},
      {"unknown_kind_of_dispatch", "V11", "has dispatch auto, not all_to_all or all_gather",
       [](Plan& p) { p.modules[1].dispatch = "auto"; }},
      {"an_encoder_gathers", "V11", "has dispatch all_gather, not all_to_all, with ep 1 and no experts",
       [](Plan& p) { p.modules[0].dispatch = "all_gather"; }},
      {"gathers_from_nobody", "V11", "has dispatch all_gather, not all_to_all, with ep 1",
       [](Plan& p) { p.modules[1].dispatch = "all_gather"; }, Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1))},

      // Tokens that are not those of all ranks.
      {"own_tokens_alone", "V4", "but sequence is 96", forward([](Block& b) {
         for (const char* name : {"n", "weights", "ids"}) {
           ReadInstead(b, string(name) + "_all", name);
           Remove(b, string(name) + "_all");
         }
       })},
      {"own_choices_of_all_tokens", "V4", "dim 0 of ids", forward([](Block& b) {
         ReadInstead(b, "ids_all", "ids");
         Remove(b, "ids_all");
       })},
      {"gathered_over_another_group", "V4", "dispatches tokens over language.dp_cp",
       forward([](Block& b) { Maker(b, "n_all")->group = "language.dp_cp"; })},
      {"gathered_over_an_encoders_group", "V4", "a group of radio_encoder",
       forward([](Block& b) { Maker(b, "n_all")->group = "radio_encoder.tp"; })},
      {"all_gather_in_its_place", "V4", "needs n cut along dim 0 over ep, but it is whole", forward([](Block& b) {
         Maker(b, "n_all")->kind = OpKind::kAllGather;
         Maker(b, "n_all")->attributes = {{"dim", int64_t{0}}};
       })},
      {"counts_of_the_whole_group", "V4", "but ep is 2",
       forward([](Block& b) { Maker(b, "order")->inputs[3] = "counts_all"; }), kEp2Tp2ExpertTp2},
      {"counts_of_its_own", "V4", "counts has 1 dims",
       forward([](Block& b) { Maker(b, "order")->inputs[3] = "counts"; })},
      {"tokens_of_another_value", "V5", "one term too many, of select_rows of x_all", forward([](Block& b) {
         Instruction gather = *Maker(b, "n_all");
         gather.inputs = {"x"}, gather.outputs[0].name = "x_all";
         b.body.insert(Maker(b, "n_all"), gather);
         ReadInstead(b, "n_all", "x_all");
         Remove(b, "n_all");
       })},
      {"gathered_as_a_narrower_type", "V4", "turns fp32 into bf16",
       forward([](Block& b) { TypeOf(b, "weights_all").dtype = DType::kBf16; })},
      {"tokens_that_tp_did_not_cut", "V4", "gather_tokens of n_whole: has fp32[48,1,64] on each of 2 ranks",
       forward([](Block& b) {
         Instruction whole{.kind = OpKind::kAllGather, .inputs = {"n"}, .outputs = {{"n_whole", TypeOf(b, "n")}}};
         whole.attributes = {{"dim", int64_t{0}}};
         whole.group = "language.tp";
         ValueType& type = whole.outputs[0].type;
         type.dims[0] = 2 * std::get<int64_t>(type.dims[0]);
         type.layout.clear();
         type.gradient = Layout{{Axis::kTp, {AxisLayout::State::kPartial, 0}}};
         b.body.insert(Maker(b, "n_all"), whole);
         Maker(b, "n_all")->inputs = {"n_whole"};
       }),
       kEp2Tp2ExpertTp2},

      // Sums over ranks of what is no term of a sum.
      {"sum_of_tokens", "V6", "sums n_all, which is no term of a sum over the tokens of all ep ranks",
       forward([](Block& b) {
         AddBehind(b, OpKind::kScatterTokens, "n_all", "n_twice", "n");
         AddBehind(b, OpKind::kGatherTokens, "n_twice", "n_again", "n_all");
         ReadInstead(b, "n_all", "n_again");
       })},
      {"sum_of_the_sum", "V6", "sums y_again, which is no term of a sum over the tokens of all ep ranks",
       forward([](Block& b) {
         AddBehind(b, OpKind::kGatherTokens, "y", "y_again", "n_all");
         AddBehind(b, OpKind::kScatterTokens, "y_again", "y_twice", "y");
         ReadInstead(b, "y", "y_twice");
       })},
      {"all_reduce_of_the_sum", "V6", "reduces y over ep", forward([](Block& b) {
         AddBehind(b, OpKind::kAllReduce, "y", "y_twice", "y", {{"reduce", string("sum")}});
         ReadInstead(b, "y", "y_twice");
       })},
      {"gradients_summed_twice", "V6", "sums dn_again", backward([](Block& b) {
         AddBehind(b, OpKind::kGatherTokens, "dn_rows", "dn_again", "dy_all");
         AddBehind(b, OpKind::kScatterTokens, "dn_again", "dn_twice", "dn_rows");
         ReadInstead(b, "dn_rows", "dn_twice");
       })},

      // Terms that are not summed, or not all of them.
      {"own_part_without_a_sum", "V6", "moves y_all, which is a term of a sum over the tokens of all ep ranks",
       forward([](Block& b) {
         Instruction& op = *Maker(b, "y");
         op.kind = OpKind::kLocalSlice;
         op.group = "";
         op.attributes = {{"dim", int64_t{0}}, {"axis", string("ep")}};
       })},
      {"terms_gathered", "V6", "moves y_all", forward([](Block& b) { Maker(b, "y")->kind = OpKind::kGatherTokens; })},
      {"reduce_scatter_in_its_place", "V6", "moves y_all", forward([](Block& b) {
         Maker(b, "y")->kind = OpKind::kReduceScatter;
         Maker(b, "y")->attributes = {{"dim", int64_t{0}}};
       })},
      {"terms_returned_as_they_are", "V4", "", forward([](Block& b) {
         ReadInstead(b, "y", "y_all");
         Remove(b, "y");
       })},
      {"summed_over_the_wrong_ranks", "V4", "dispatches tokens over language.tp",
       forward([](Block& b) { Maker(b, "y")->group = "language.tp"; }), kEp2Tp2ExpertTp2},
      {"one_token_too_few", "V4", "on each of 2 ranks",
       forward([](Block& b) { std::get<int64_t>(TypeOf(b, "y").dims[0]) -= 1; })},
      {"a_term_that_is_rounded", "V4", "y_all is bf16, not fp32",
       forward([](Block& b) { TypeOf(b, "y_all").dtype = DType::kBf16; }), Join(kEp2, {"precision.params=bf16"})},
      {"a_sum_that_is_not_rounded", "V4", "y is fp32, not bf16",
       forward([](Block& b) { TypeOf(b, "y").dtype = DType::kFp32; }), Join(kEp2, {"precision.params=bf16"})},
      {"integers_are_summed", "V6", "sums ids_all",
       forward([](Block& b) { AddBehind(b, OpKind::kScatterTokens, "ids_all", "no_ids", "ids"); })},

      // The backward.
      {"another_gradient_gathered", "V5", "makes n_again by gather_tokens, which neither is a gradient nor",
       backward([](Block& b) {
         Instruction gather = *Maker(b, "dy_all");
         gather.inputs = {"n"}, gather.outputs[0].name = "n_again";
         b.body.insert(Maker(b, "dy_all"), gather);
         ReadInstead(b, "dy_all", "n_again");
         Remove(b, "dy_all");
       })},
      {"own_gradients_alone", "V5", "has dx_out of", backward([](Block& b) {
         for (Instruction& op : b.body)
           std::replace(op.inputs.begin(), op.inputs.end(), string("dy_all"), string("dx_out"));
         Remove(b, "dy_all");
       })},
      {"gradients_of_weights_forgotten", "V5", "", backward([](Block& b) {
         for (Instruction& op : b.body) {
           if (op.kind == OpKind::kRouteGrad)
             std::replace(op.inputs.begin(), op.inputs.end(), string("dweights"), string("weights"));
         }
         Remove(b, "dweights");
       })},
      {"order_of_other_rows", "V4", "ids has 2 dims where 1 are needed",
       backward([](Block& b) { Maker(b, "dn_all")->inputs[2] = "ids"; })},

      // Sizes at run time.
      {"no_room_for_all_rows", "V10", "language.expert_rows has room for",
       [](Plan& p) {
         for (Symbol& symbol : p.symbols) {
           if (symbol.name == "language.expert_rows") symbol.maximum /= 2, symbol.expected = symbol.mean = 0;
         }
       }},
      {"memory_for_fewer_rows", "V10", "memory is planned for",
       [](Plan& p) {
         for (Symbol& symbol : p.symbols) {
           if (symbol.name == "language.expert_rows") symbol.expected = 1;
         }
       }},
      {"rows_of_another_size", "V10", "rows are counted by language.image_rows, not by language.expert_rows",
       [](Plan& p) {
         for (Block& b : p.blocks) {
           for (auto* list : {&b.inputs, &b.takes}) {
             for (Output& value : *list) {
               for (Dim& dim : value.type.dims)
                 if (dim == Dim("language.expert_rows")) dim = "language.image_rows";
             }
           }
           for (Instruction& op : b.body) {
             for (Output& value : op.outputs) {
               for (Dim& dim : value.type.dims)
                 if (dim == Dim("language.expert_rows")) dim = "language.image_rows";
             }
           }
         }
       }},
  };
}

class GatheredTokens : public ::testing::TestWithParam<Damage> {};

TEST_P(GatheredTokens, AreRefusedWhereTheyAreNotThose) {
  const Plan sound = CompiledFile(kTiny, GetParam().overrides);
  ASSERT_TRUE(VerifyPlan(sound).empty());
  Plan damaged = sound;
  GetParam().inflict(damaged);
  // Values are freed where they are last read, so that no rule finds the damage by that.
  for (Block& block : damaged.blocks) {
    if (block.name == kForward || block.name == kBackward) FillFrees(block);
  }
  const std::vector<Violation> found = VerifyPlan(damaged);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].rule, GetParam().rule) << found[0].message;
  EXPECT_THAT(found[0].message, ::testing::HasSubstr(GetParam().says));
  for (const Violation& violation : found) {
    ASSERT_GE(violation.origin, 0) << violation.message;
    ASSERT_LT(violation.origin, static_cast<int>(damaged.origins.size()));
    EXPECT_GT(damaged.origins[static_cast<size_t>(violation.origin)].line, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Damaged, GatheredTokens, ::testing::ValuesIn(Damages()),
                         [](const auto& info) { return string(info.param.name); });

}  // namespace
}  // namespace planwright
