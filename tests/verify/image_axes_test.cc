// Plans of an encoder without class tokens that feeds heads which turn by rows and columns of images, damaged by hand.
// Each is refused, with a message that says what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using std::string;
using testing::Join;
using testing::LanguageOn;
using testing::Parallel;

const string kQwen = InSource("tests/golden/qwen3_vl_oracle/oracle.yaml");
// Parts of images on two ranks, apart from a language model in two stages.
const std::vector<string> kApart =
    Join({"modules.eye_encoder.placement={first_rank: 0, ranks: 2}", "modules.eye_encoder.parallel.cp=2"},
         Join(LanguageOn(2, 2, 1, 1), Parallel("language", {{"pp", 2}})));

Block& BlockOf(Plan& plan, const string& name) {
  for (Block& block : plan.blocks) {
    if (block.name == name) return block;
  }
  throw std::runtime_error("no block " + name);
}

Instruction& Maker(std::vector<Instruction>& body, OpKind kind) {
  for (Instruction& op : body) {
    if (op.kind == kind) return op;
  }
  throw std::runtime_error("no " + string(OpName(kind)));
}

struct Damage {
  const char* name;
  const char* rule;
  const char* says;  // part of the first violation
  std::function<void(Plan&)> inflict;
  friend void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }
};

std::vector<Damage> Damages() {
  const auto in = [](const char* block, OpKind kind, std::function<void(Instruction&)> change) {
    return [=](Plan& plan) { change(Maker(BlockOf(plan, block).body, kind)); };
  };
  const auto in_programs = [](OpKind kind, std::function<void(Instruction&)> change) {
    return [=](Plan& plan) {
      for (Role& role : plan.roles) {
        for (Instruction& op : role.step) {
          if (op.kind == kind) change(op);
        }
      }
    };
  };
  const auto layer = "eye_encoder.layer.forward";
  return {
      // Films are made of pixels alone, and what the embedding makes of them is not.
      {"films_take_a_gradient", "V5", "films declares a gradient that never comes",
       [](Plan& p) {
         ValueType& films = Maker(BlockOf(p, "eye_encoder.embed.forward").body, OpKind::kRepeatFrames).outputs[0].type;
         films.gradient = films.layout;
         for (Output& take : BlockOf(p, "eye_encoder.embed.backward").takes) {
           if (take.name == "films") take.type = films;
         }
       }},
      {"the_embedding_takes_none", "V5", "gets a gradient that it does not declare",
       in("eye_encoder.embed.forward", OpKind::kLinear, [](Instruction& op) { op.outputs[0].type.gradient.reset(); })},
      {"more_frames", "V4", "frames",
       in("eye_encoder.embed.forward", OpKind::kRepeatFrames,
          [](Instruction& op) { op.attributes["frames"] = int64_t{3}; })},
      {"another_side_of_the_table", "V4", "side",
       in("eye_encoder.embed.forward", OpKind::kAddPositions,
          [](Instruction& op) { op.attributes["side"] = int64_t{4}; })},
      {"class_tokens_that_are_none", "V11", "class_tokens",
       [](Plan& p) {
         Maker(BlockOf(p, "eye_encoder.layer.forward").body, OpKind::kPackedAttention).attributes["class_tokens"] =
             int64_t{1};
         Maker(BlockOf(p, "eye_encoder.layer.backward").body, OpKind::kPackedAttentionGrad).attributes["class_tokens"] =
             int64_t{1};
       }},
      {"another_base_of_axial_turns", "V4", "theta",
       in(layer, OpKind::kAxialRope, [](Instruction& op) { op.attributes["theta"] = 10000.0; })},
      {"parts_that_do_not_know_their_rows", "V4", "cp",
       in(layer, OpKind::kAxialRope,
          [](Instruction& op) { op.attributes.erase("cp"), op.attributes.erase("factor"); })},
      {"planes_of_other_axes", "V4", "height",
       in("language.attention.forward", OpKind::kRope, [](Instruction& op) { op.attributes["height"] = int64_t{1}; })},
      {"places_in_the_text_alone", "V4", "positions",
       in_programs(OpKind::kReadPositions, [](Instruction& op) { op.outputs[0].type.dims[0] = int64_t{1}; })},
      {"pixels_of_another_encoder", "V11", "pixels", [](Plan& p) { p.data.encoders[0].pixels = "clip"; }},
      {"pixels_of_nobody", "V11", "pixels", [](Plan& p) { p.data.encoders[0].pixels = "quarter"; }},
  };
}

class ImageAxes : public ::testing::TestWithParam<Damage> {};

TEST_P(ImageAxes, DamagedPlansAreRefused) {
  Plan plan = testing::CompiledFile(kQwen, kApart);
  ASSERT_TRUE(VerifyPlan(plan).empty());
  GetParam().inflict(plan);
  const std::vector<Violation> violations = VerifyPlan(plan);
  ASSERT_FALSE(violations.empty());
  EXPECT_EQ(violations[0].rule, GetParam().rule) << violations[0].message;
  EXPECT_THAT(violations[0].message, ::testing::HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(Damages, ImageAxes, ::testing::ValuesIn(Damages()),
                         [](const auto& of) { return string(of.param.name); });

}  // namespace
}  // namespace planwright
