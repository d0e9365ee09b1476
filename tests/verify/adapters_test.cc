// Plans of runs with adapters, damaged by hand so that shapes and names still fit: another place among joined features,
// another scale, a gradient that is lost on its way, frozen weights in a checkpoint. Each is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

using std::string;
using ::testing::Contains;
using ::testing::HasSubstr;

Plan Adapted() {
  return testing::CompiledFile(
      InSource("recipes/llama_tiny.yaml"),
      testing::Join(testing::LanguageOn(0, 2, 2, 1),
                    {"checkpoint.every_steps=2", "modules.language.train.backbone=frozen",
                     "modules.language.adapter={rank: 4, alpha: 8.0, targets: [q_proj, k_proj, v_proj, down_proj]}"}));
}

Block& BlockOf(Plan& plan, const string& name) {
  for (Block& block : plan.blocks) {
    if (block.name == name) return block;
  }
  throw std::runtime_error("no block " + name);
}

// The instructions of a kind, in order.
std::vector<Instruction*> AllOf(Block& block, OpKind kind) {
  std::vector<Instruction*> all;
  for (Instruction& op : block.body) {
    if (op.kind == kind) all.push_back(&op);
  }
  return all;
}

// "V4 block language.attention.forward ..."
std::vector<string> Refusals(const std::function<void(Plan&)>& damage) {
  Plan plan = Adapted();
  damage(plan);
  std::vector<string> refusals;
  for (const Violation& violation : VerifyPlan(plan)) refusals.push_back(violation.rule + " " + violation.message);
  return refusals;
}

constexpr int64_t kKeyFeatures = 16;  // of a rank

Instruction& AddOf(Plan& plan, size_t number) {
  return *AllOf(BlockOf(plan, "language.attention.forward"), OpKind::kAddLinear).at(number);
}

// Calls `damage` with each add_linear and its backwards whose weight has such a name.
void ForEach(Plan& plan, const string& part, const std::function<void(const string&, Instruction&)>& damage) {
  for (const char* name : {"language.attention.forward", "language.attention.backward"}) {
    for (Instruction& op : BlockOf(plan, name).body) {
      const std::vector<string>& slots = op.parameters.empty() ? op.gradients : op.parameters;
      const bool added = op.kind == OpKind::kAddLinear || op.kind == OpKind::kAddLinearInputGrad ||
                         op.kind == OpKind::kAddLinearWeightGrad;
      if (added && slots.front().find(part) != string::npos) damage(slots.front(), op);
    }
  }
}

TEST(AdapterPlans, AreRight) {
  EXPECT_THAT(Refusals([](Plan&) {}), ::testing::IsEmpty());
}

// Over tp q, k and v of a rank lie one behind the other.
TEST(AdapterPlans, AddToTheFeaturesOfTheirProduct) {
  const auto moved = [](int64_t by) {
    return Refusals([&](Plan& plan) {
      Attribute& first = AddOf(plan, 1).attributes.at("first");
      first = std::get<int64_t>(first) + by;
    });
  };
  EXPECT_THAT(moved(-1), Contains(HasSubstr("V4 block language.attention.forward add_linear")));
  EXPECT_THAT(moved(1), Contains(HasSubstr(", which is made of")));
  EXPECT_THAT(moved(1000), Contains(HasSubstr("adds to the features")));
  // The forward alone; and both, with those of v in the place of k, which are of the same size.
  EXPECT_THAT(moved(kKeyFeatures), Contains(HasSubstr("with another first than the add_linear")));
  EXPECT_THAT(Refusals([](Plan& plan) {
                ForEach(plan, "_proj", [](const string& weight, Instruction& op) {
                  if (!op.FindInteger("first")) return;
                  const bool key = weight.find("k_proj") != string::npos;
                  op.attributes.at("first") = *op.FindInteger("first") + (key ? kKeyFeatures : -kKeyFeatures);
                });
              }),
              Contains(HasSubstr("V11 block language.attention.forward")));
}

TEST(AdapterPlans, HaveTheirScale) {
  EXPECT_THAT(Refusals([](Plan& plan) { AddOf(plan, 0).attributes.at("scale") = 1.0; }),
              Contains(HasSubstr("with another scale than the add_linear")));
  EXPECT_THAT(Refusals([](Plan& plan) {
                ForEach(plan, "q_proj", [](const string&, Instruction& op) { op.attributes.at("scale") = 1.0; });
              }),
              Contains(HasSubstr("V11 block language.attention.forward")));
}

// Only the gradient that comes out of the first layer may be lost, as nothing before it learns.
TEST(AdapterPlans, HandGradientsDownToTheFirstLayer) {
  EXPECT_THAT(Refusals([](Plan& plan) {
                std::vector<Instruction*> calls = AllOf(BlockOf(plan, "language.s0.backward"), OpKind::kCall);
                ASSERT_GE(calls.size(), 3U);
                // The last layer but one is skipped: its gradient goes nowhere, and the next one gets that of the head.
                calls.at(2)->inputs = calls.at(1)->inputs;
              }),
              Contains(HasSubstr("V4 block language.s0.backward makes ")));
}

TEST(AdapterPlans, KeepTheAdaptersAlone) {
  EXPECT_THAT(Refusals([](Plan& plan) {
                for (CheckpointRule& rule : plan.checkpoint.rules) rule.kept = true;
              }),
              Contains(HasSubstr("is what adapters stand on, but checkpoints have it")));
  EXPECT_THAT(Refusals([](Plan& plan) {
                for (CheckpointRule& rule : plan.checkpoint.rules) rule.kept = false;
              }),
              Contains(HasSubstr("but no checkpoint has it")));
}

TEST(AdapterPlans, StandOnProductsOfFrozenLayers) {
  EXPECT_THAT(Refusals([](Plan& plan) { plan.modules.at(0).trains_backbone = true; }),
              Contains(HasSubstr("language.s0.backward makes dx_in, which nothing reads")));
  EXPECT_THAT(Refusals([](Plan& plan) { plan.modules.at(0).adapter_targets.push_back("lm_head"); }),
              Contains(HasSubstr("has the adapter target lm_head, but lm_head is in no layer")));
  // The names of the same products in another form would be another plan.
  for (const auto& change : std::vector<std::function<void(std::vector<std::string>&)>>{
           [](std::vector<std::string>& targets) { targets.push_back(targets[0]); },
           [](std::vector<std::string>& targets) { targets.push_back("q_proj"); },
           [](std::vector<std::string>& targets) { std::swap(targets[0], targets[1]); }}) {
    EXPECT_THAT(Refusals([&](Plan& plan) { change(plan.modules.at(0).adapter_targets); }),
                Contains(HasSubstr("has adapter targets that are not the names of products")));
  }
  EXPECT_THAT(Refusals([](Plan& plan) { plan.modules.at(0).constants.at("adapter.rank") = int64_t{0}; }),
              Contains(HasSubstr("has the constant adapter.rank 0, not a number above 0")));
}

}  // namespace
}  // namespace planwright
