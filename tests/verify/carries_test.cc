// Features that travel beside the stream: plans on layouts that cut and hand them on in every way, and plans damaged by
// hand, each of which is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using std::string;
using testing::AxisSize;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Join;
using testing::Parallel;

std::vector<string> Placed(const string& module, int first_rank, int ranks, const std::vector<AxisSize>& axes) {
  return Join({"modules." + module + ".placement={first_rank: " + std::to_string(first_rank) +
               ", ranks: " + std::to_string(ranks) + "}"},
              Parallel(module, axes));
}

Plan Made(const std::vector<string>& overrides) {
  return testing::CompiledFile(InSource("tests/verify/carries.yaml"), overrides);
}

// The encoder on two lanes of two ranks, the language model on two stages that both take features.
std::vector<string> TwoStages() {
  return Join(Placed("eye_encoder", 0, 4, {{"tp", 2}}), Placed("language", 4, 2, {{"pp", 2}}),
              {"modules.language.parallel.stage_layers=[3, 7]", "batch.micro_samples=2"});
}

struct Layout {
  const char* name;
  std::vector<string> overrides;
  friend void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }
};

class OnLayouts : public ::testing::TestWithParam<Layout> {};

// Compiled plans have passed their proof.
TEST_P(OnLayouts, ArePlanned) {
  const Plan plan = Made(GetParam().overrides);
  ASSERT_FALSE(plan.blocks.empty());
  for (const Violation& violation : VerifyPlan(plan)) ADD_FAILURE() << violation.rule << ": " << violation.message;
}

INSTANTIATE_TEST_SUITE_P(
    Carries, OnLayouts,
    ::testing::Values(
        Layout{"apart", {}}, Layout{"colocated", Placed("language", 0, 1, {})},
        Layout{"tp_of_language", Placed("language", 1, 2, {{"tp", 2}})},
        Layout{"cp_of_language", Placed("language", 1, 2, {{"cp", 2}})},
        Layout{"tp_and_cp_of_language", Placed("language", 1, 4, {{"tp", 2}, {"cp", 2}})},
        Layout{"tp_of_encoder", Join(Placed("eye_encoder", 0, 2, {{"tp", 2}}), Placed("language", 2, 1, {}))},
        Layout{"cp_of_encoder", Join(Placed("eye_encoder", 0, 2, {{"cp", 2}}), Placed("language", 2, 1, {}))},
        Layout{"stages_of_encoder", Join(Placed("eye_encoder", 0, 2, {{"pp", 2}}), Placed("language", 2, 1, {}))},
        Layout{"parts_over_stages_of_encoder",
               Join(Placed("eye_encoder", 0, 4, {{"pp", 2}, {"cp", 2}}), Placed("language", 4, 1, {}))},
        Layout{"two_stages", TwoStages()},
        Layout{"parts_over_stages",
               Join(Placed("eye_encoder", 0, 1, {}), Placed("language", 1, 4, {{"pp", 2}, {"tp", 2}}))},
        Layout{"frozen_encoder", {"modules.eye_encoder.train={backbone: frozen, projection: frozen}"}},
        Layout{"frozen_backbone", {"modules.eye_encoder.train={backbone: frozen}"}},
        Layout{"frozen_backbone_over_stages",
               Join(Placed("eye_encoder", 0, 4, {{"pp", 2}, {"tp", 2}}), Placed("language", 4, 1, {}),
                    {"modules.eye_encoder.train={backbone: frozen}"})},
        // No stage but the last has a tap.
        Layout{"frozen_first_stages",
               Join(Placed("eye_encoder", 0, 3, {{"pp", 3}}), Placed("language", 3, 1, {}),
                    {"models.eye.pattern=VV|V|VDVD", "modules.eye_encoder.train={backbone: frozen}"})},
        // A stage in the middle has a tap, and layers without a backward; the one behind it hands on alone.
        Layout{"frozen_between_taps",
               Join(Placed("eye_encoder", 0, 4, {{"pp", 4}}), Placed("language", 4, 1, {}),
                    {"models.eye.pattern=VVD|V|VD|V", "modules.eye_encoder.train={backbone: frozen}"})},
        Layout{"adapters_between_taps",
               Join(Placed("eye_encoder", 0, 4, {{"pp", 4}}), Placed("language", 4, 1, {}),
                    {"models.eye.pattern=VVD|V|VD|V",
                     "modules.eye_encoder={train: {backbone: frozen, projection: frozen}, adapter: {rank: 2, alpha: 4, "
                     "targets: [qkv]}}"})},
        Layout{"frozen_language", {"modules.language.train={backbone: frozen}"}},
        Layout{"frozen_language_cut",
               Join(Placed("language", 1, 4, {{"tp", 2}, {"cp", 2}}), {"modules.language.train={backbone: frozen}"})},
        Layout{"nothing_but_adapters", Join(Placed("language", 1, 2, {{"tp", 2}}),
                                            {"modules.eye_encoder.train={backbone: frozen, projection: frozen}",
                                             "modules.language={train: {backbone: frozen}, adapter: {rank: 2, alpha: "
                                             "4, targets: [q_proj]}}"})},
        // A tap of the language model has no weights: no bucket waits for it.
        Layout{"overlapped",
               Join(Placed("eye_encoder", 0, 2, {{"tp", 2}}), Placed("language", 2, 4, {{"tp", 2}, {"pp", 2}}),
                    {"gradients={overlap_reduce: true, overlap_gather: true, buckets: 3}"})},
        Layout{"overlapped_over_lanes", Join(Placed("eye_encoder", 0, 2, {}), Placed("language", 2, 2, {}),
                                             {"gradients={overlap_reduce: true, overlap_gather: true, buckets: 3}"})},
        Layout{"evaluated", Join(Placed("eye_encoder", 0, 2, {{"pp", 2}}), Placed("language", 2, 2, {{"pp", 2}}),
                                 {"evaluation={every_samples: 40, sets: [{name: held_out, samples: 8, seed: 7}]}"})},
        Layout{
            "recomputed_behind_a_frozen_encoder",
            {"modules.eye_encoder.train={backbone: frozen, projection: frozen}", "modules.language.recompute=[full]"}},
        Layout{"recomputed", {"modules.language.recompute=[full]", "modules.eye_encoder.recompute=[full]"}}),
    [](const auto& info) { return string(info.param.name); });

const Block& BlockNamed(const Plan& plan, const string& name) {
  for (const Block& block : plan.blocks) {
    if (block.name == name) return block;
  }
  throw std::runtime_error("no block " + name);
}

std::vector<string> Names(const std::vector<Output>& outputs) {
  std::vector<string> names;
  for (const Output& output : outputs) names.push_back(output.name);
  return names;
}

// Each tap has blocks of its own. Its carry grows in the encoder, and shrinks in the language model.
TEST(Carries, GrowAndShrink) {
  const Plan plan = Made({});
  const auto features = [&](const string& block, const string& value) {
    for (const Output& input : BlockNamed(plan, block).inputs) {
      if (input.name == value) return std::get<int64_t>(input.type.dims.back());
    }
    return int64_t{0};
  };
  EXPECT_EQ(features("eye_encoder.tap.0.forward", "deep"), 0);
  EXPECT_EQ(features("eye_encoder.tap.1.forward", "deep"), 32);
  EXPECT_EQ(features("eye_encoder.head.forward", "deep"), 64);
  EXPECT_EQ(features("language.embed.forward", "rows"), 96);
  EXPECT_EQ(features("language.deepstack.0.forward", "later"), 64);
  EXPECT_EQ(features("language.deepstack.1.forward", "later"), 32);
  EXPECT_EQ(BlockNamed(plan, "language.deepstack.1.forward").outputs.size(), 1U) << "nothing is left";
}

// What leaves a stage is the stream, and behind it the carry. A stage without a tap hands it on.
TEST(Carries, AreSentOnBehindTheStream) {
  const Plan plan =
      Made(Join(Placed("language", 1, 3, {{"pp", 3}}), {"modules.language.parallel.stage_layers=[3, 2, 5]"}));
  EXPECT_THAT(Names(BlockNamed(plan, "language.s1.forward").inputs), Contains("later_in"));
  EXPECT_THAT(BlockNamed(plan, "language.s1.forward").outputs, Contains("later_in"));
  EXPECT_THAT(Names(BlockNamed(plan, "language.s1.backward").inputs), ElementsAre("dx_out", "dlater_out"));
  size_t parts = 0;
  for (const Role& role : plan.roles) {
    if (role.name != "language.s1") continue;
    for (const Instruction& op : role.step) parts = std::max(parts, op.parts.size());
  }
  EXPECT_GE(parts, 2U);
}

struct Damage {
  const char *name, *says;  // part of a violation, with its rule
  std::function<void(Plan&)> inflict;
  friend void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }
};

Block& Of(Plan& plan, const string& name) { return const_cast<Block&>(BlockNamed(plan, name)); }

Instruction& Maker(std::vector<Instruction>& body, OpKind kind) {
  for (Instruction& op : body) {
    if (op.kind == kind) return op;
  }
  throw std::runtime_error("no " + string(OpName(kind)));
}

// Calls `change` with the parts of values that pass between the same stages in one exchange, and with the exchange.
void InExchanges(Plan& plan, const std::function<void(ExchangePart&, ExchangePart&, Instruction&)>& change) {
  for (Role& role : plan.roles) {
    for (Instruction& op : role.step) {
      for (size_t p = 1; p < op.parts.size(); ++p) {
        ExchangePart &stream = op.parts[p - 1], &carry = op.parts[p];
        const bool together = !stream.group.empty() && stream.group == carry.group && stream.send == carry.send &&
                              stream.backward == carry.backward;
        if (together) change(stream, carry, op);
      }
    }
  }
}

// At both ends, so that what is sent is what is received.
void SwapInExchanges(Plan& plan) {
  InExchanges(plan, [](ExchangePart& stream, ExchangePart& carry, Instruction& op) {
    const auto made = [&](const string& name) {
      return std::find_if(op.outputs.begin(), op.outputs.end(), [&](const Output& each) { return each.name == name; });
    };
    const auto first = made(stream.value), second = made(carry.value);
    if (first != op.outputs.end() && second != op.outputs.end()) std::swap(*first, *second);
    std::swap(stream, carry);
  });
}

class Damaged : public ::testing::TestWithParam<Damage> {};

TEST_P(Damaged, IsRefused) {
  Plan plan = Made(TwoStages());
  ASSERT_FALSE(plan.blocks.empty());
  GetParam().inflict(plan);
  std::vector<string> refusals;
  for (const Violation& violation : VerifyPlan(plan)) refusals.push_back(violation.rule + " " + violation.message);
  EXPECT_THAT(refusals, Contains(HasSubstr(GetParam().says)));
}

INSTANTIATE_TEST_SUITE_P(
    Carries, Damaged,
    ::testing::Values(
        Damage{"another_width", "V4",
               [](Plan& p) {
                 Maker(Of(p, "language.embed.forward").body, OpKind::kSplitFeatures).attributes["first"] = int64_t{31};
               }},
        // The rest has the same width as the part: it would be added in place of it.
        Damage{"the_rest_in_place_of_the_part", "V5 block language.deepstack.0.backward",
               [](Plan& p) {
                 Instruction& split = Maker(Of(p, "language.deepstack.0.forward").body, OpKind::kSplitFeatures);
                 std::swap(split.outputs[0].name, split.outputs[1].name);
               }},
        Damage{"joined_in_another_order", "V5 block eye_encoder.tap.1.backward",
               [](Plan& p) {
                 Instruction& join = Maker(Of(p, "eye_encoder.tap.1.forward").body, OpKind::kJoinFeatures);
                 std::swap(join.inputs[0], join.inputs[1]);
               }},
        Damage{"a_carry_before_the_stream", "V11 role language.s0 exchanges", SwapInExchanges},
        Damage{"sent_without_its_carry", "role language.s",
               [](Plan& p) {
                 InExchanges(p, [](ExchangePart& stream, ExchangePart& carry, Instruction&) {
                   if (carry.send) carry.value = stream.value;
                 });
               }},
        Damage{
            "a_gradient_that_is_called_whole", "V4",
            [](Plan& p) {
              Plan tp = Made(Placed("language", 1, 2, {{"tp", 2}}));
              Maker(Of(tp, "language.deepstack.0.backward").body, OpKind::kAddImagesGrad).outputs[0].type.layout = {};
              p = std::move(tp);
            }},
        Damage{"a_gradient_that_is_lost", "block language.deepstack.0.backward",
               [](Plan& p) {
                 Instruction& join = Maker(Of(p, "language.deepstack.0.backward").body, OpKind::kSplitFeaturesGrad);
                 join.inputs[1] = join.inputs[0];
               }},
        Damage{"an_old_carry_for_the_head", "V4 block eye_encoder.s0.forward",
               [](Plan& p) {
                 std::vector<Instruction>& calls = Of(p, "eye_encoder.s0.forward").body;
                 string older;
                 for (Instruction& op : calls) {
                   if (op.block == "eye_encoder.tap.0.forward") older = op.outputs[1].name;
                   if (op.block == "eye_encoder.head.forward") op.inputs.back() = older;
                 }
               }},
        Damage{"fewer_taps", "V11 bridge ",
               [](Plan& p) {
                 for (Module& module : p.modules) {
                   if (module.name == "eye_encoder") module.layers.at(2).kind = 'V';
                 }
               }}),
    [](const auto& info) { return string(info.param.name); });

}  // namespace
}  // namespace planwright
