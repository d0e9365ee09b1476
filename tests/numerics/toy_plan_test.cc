// Plans of the toy (tests/plan/statement/toy_kind.h): what the planner makes of its statement, what the rules say of
// other plans, and what a recipe is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "planner/plan/plan_json.h"
#include "planner/verify/rules.h"
#include "planner/verify/verify.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Plan Text(int ranks, const std::vector<AxisSize>& axes, const std::vector<std::string>& more = {}) {
  return CompiledFile(InSource(kTextRecipe), Join(LanguageOn(0, ranks, 1, 1), Parallel("language", axes), more));
}

Storage& StorageOf(Plan& plan, const std::string& frame, const std::string& slot) {
  std::vector<Storage>& storages = plan.modules.at(0).storages;
  const auto found = std::find_if(storages.begin(), storages.end(), [&](const Storage& storage) {
    return storage.frame == frame && storage.slot == slot;
  });
  EXPECT_NE(found, storages.end()) << slot;
  return *found;
}

TEST(ToyPlan, TheHeadIsTheEmbedding) {
  Plan plan = Text(4, {{"tp", 2}, {"ep", 2}, {"expert_tp", 2}}, {"models.hybrid_moe_tiny.vocabulary=257"});
  const Storage& embeddings = StorageOf(plan, "language.embed", "embeddings");
  EXPECT_THAT(embeddings.shared, ElementsAre(SharedSlot{"language.head", "lm_head"}));
  EXPECT_EQ(embeddings.shape, (std::vector<int64_t>{129, 64}));
  for (const Parameter& parameter : plan.modules[0].parameters)
    EXPECT_THAT(parameter.name, ::testing::Not(HasSubstr("lm_head")));
  // One rank of expert_tp 2 and ep 2: four experts, each with half of the rows of both parameters.
  const Storage& up = StorageOf(plan, "language.layers.1", "up");
  EXPECT_EQ(up.shape, (std::vector<int64_t>{4, 24 + 32, 64}));
  EXPECT_THAT(up.parameters, SizeIs(2));
  // The plan is what its file says.
  const auto read = ReadPlan(WritePlan(plan));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(WritePlan(*read), WritePlan(plan));
}

struct Damage {
  const char* says;
  const char* rule;
  std::function<void(Plan&)> inflict;
};

// The rule sees each damage, and says so.
void ExpectTold(const Plan& sound, const std::vector<Damage>& damages,
                const std::function<std::vector<Violation>(const Plan&)>& verify) {
  EXPECT_THAT(verify(sound), IsEmpty());
  for (const Damage& damage : damages) {
    Plan plan = sound;
    damage.inflict(plan);
    const std::vector<Violation> found = verify(plan);
    const bool told = std::any_of(found.begin(), found.end(), [&](const Violation& violation) {
      return violation.rule == damage.rule && violation.message.find(damage.says) != std::string::npos;
    });
    std::string all;
    for (const Violation& violation : found) all += violation.rule + ": " + violation.message + "\n";
    EXPECT_TRUE(told) << damage.says << "\n" << all;
  }
}

// By code of its own, verify knows who shares what, and who adds to which gradient.
TEST(ToyPlan, OtherPlansAreRefused) {
  const Plan sound = Text(2, {{"tp", 2}});
  const auto embeddings = [](Plan& plan) -> Storage& { return StorageOf(plan, "language.embed", "embeddings"); };
  const auto shared = [&](Plan& plan) -> SharedSlot& { return embeddings(plan).shared.at(0); };
  const std::vector<Damage> damages = {
      {"lm_head", "V4", [&](Plan& plan) { embeddings(plan).shared.clear(); }},
      {"lm_head", "V4", [&](Plan& plan) { shared(plan).slot = "lm_foot"; }},
      {"language.head.norm twice", "V7", [&](Plan& plan) { shared(plan).slot = "norm"; }},
      {"in a storage of which the frame has another slot", "V7",
       [&](Plan& plan) { shared(plan).frame = "language.embed"; }},
      // The head's gradient is the one that is lost.
      {"the gradient of language.head.lm_head is added to 0 times a microbatch, not once", "V5",
       [](Plan& plan) {
         for (Block& block : plan.blocks) {
           std::erase_if(block.body,
                         [](const Instruction& op) { return op.gradients == std::vector<std::string>{"lm_head"}; });
         }
       }},
      {"joins language.backbone.layers.1.mixer.experts.{expert}.wide_proj.weight of 4 experts", "V7",
       [](Plan& plan) {
         for (Parameter& parameter : plan.modules[0].parameters) {
           if (parameter.name.ends_with("layers.1.mixer.experts.{expert}.wide_proj.weight")) parameter.experts = 4;
         }
       }},
  };
  ExpectTold(sound, damages, [](const Plan& plan) { return VerifyPlan(plan); });
}

// V11 by itself, since earlier rules see other things of these plans: who fills which slot follows from the statement.
TEST(ToyPlan, WhoSharesAStorageFollowsFromTheStatement) {
  const std::vector<Damage> damages = {
      {"language.embed.embeddings shared with [language.head.lm_head,language.layers.0.lm_head]", "V11",
       [](Plan& plan) {
         StorageOf(plan, "language.embed", "embeddings").shared.push_back({"language.layers.0", "lm_head"});
       }},
      {"language.layers.0.norm shared with [language.layers.2.spare], not []", "V11",
       [](Plan& plan) {
         StorageOf(plan, "language.layers.0", "norm").shared = {{"language.layers.2", "spare"}};
       }},
      {"language.embed.embeddings shared with [], not [language.head.lm_head]", "V11",
       [](Plan& plan) { StorageOf(plan, "language.embed", "embeddings").shared.clear(); }},
      {"of parameters", "V11",
       [](Plan& plan) {
         std::vector<int>& joined = StorageOf(plan, "language.layers.1", "up").parameters;
         std::swap(joined.at(0), joined.at(1));
       }},
  };
  ExpectTold(Text(2, {{"tp", 2}}), damages, [](const Plan& plan) { return VerifyModules(PlanIndex(plan)); });
}

// A stage has its gradients for itself: a storage cannot be on two.
TEST(ToyPlan, TwoStagesAreRefused) {
  Diagnostics problems;
  const std::optional<Recipe> recipe =
      ReadRecipe(InSource(kTextRecipe), Join(LanguageOn(0, 2, 1, 1), Parallel("language", {{"pp", 2}})), problems);
  ASSERT_TRUE(recipe);
  EXPECT_FALSE(CompileRecipe(*recipe, problems));
  ASSERT_THAT(problems.sorted(), SizeIs(1));
  const Diagnostic found = problems.sorted().at(0);
  EXPECT_EQ(found.message, "pp of module language is 2, and model hybrid_moe_tiny can have at most 1");
  EXPECT_EQ(found.help, "use pp 1");
  EXPECT_TRUE(found.where.known());
  ASSERT_THAT(found.edits, SizeIs(1));
  EXPECT_EQ(found.edits[0].value, "1");
}

}  // namespace
}  // namespace planwright::testing
