// Every field of a plan has a rule, and a change of any field is found and judged by its rule.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "planner/views/diff/compare_fields.h"
#include "planner/views/diff/field_rules.h"
#include "tests/plan/random_plan.h"
#include "tests/support/compiled.h"
#include "tests/views/diff/toy_recipes.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;
using testing::CompiledFile;

// Collects the patterns of all fields of a tree. A map counts as one field, because its keys are no fields.
void Collect(const Json& node, const std::string& pattern, std::set<std::string>& patterns) {
  const std::string name = InstructionPattern(pattern);
  if (node.is_object() && name != "instruction.attributes" && name != "modules[].constants") {
    for (const auto& [key, value] : node.items()) Collect(value, pattern.empty() ? key : pattern + "." + key, patterns);
    return;
  }
  if (!pattern.ends_with("[]")) patterns.insert(name);
  if (!node.is_array()) return;
  for (const Json& item : node) {
    if (item.is_object()) Collect(item, pattern + "[]", patterns);
  }
}

// The paths of random plans, because one plan need not have every optional field.
std::set<std::string> AllPatterns() {
  std::set<std::string> patterns;
  std::mt19937 random(7);
  for (int i = 0; i < 40; ++i) {
    Plan plan;
    RandomFill fill(random);
    Describe(fill, plan);
    Collect(FieldTree(plan), "", patterns);
  }
  return patterns;
}

TEST(FieldRules, EveryFieldOfAPlanHasOneAndEveryRowAField) {
  const std::set<std::string> patterns = AllPatterns();
  for (const std::string& pattern : patterns) EXPECT_TRUE(RuleOf(pattern)) << pattern;
  EXPECT_FALSE(RuleOf("optimizer.colour"));
  for (const FieldRow& row : FieldRows()) {
    // A number of a model is a row of its map, and no field.
    const bool in_map = std::any_of(FieldRows().begin(), FieldRows().end(), [&](const FieldRow& map) {
      return map.compare == CompareAs::kMap && row.pattern.starts_with(std::string(map.pattern) + ".");
    });
    const bool around = std::any_of(patterns.begin(), patterns.end(),
                                    [&](const std::string& pattern) { return pattern.starts_with(row.pattern); });
    EXPECT_TRUE(in_map || around) << row.pattern << " is no field of the plan";
  }
}

TEST(FieldRules, AFieldWithoutARowIsJudgedAsWhatItLiesIn) {
  const std::optional<FieldRule> eps = RuleOf("optimizer.eps");
  ASSERT_TRUE(eps);
  EXPECT_EQ(eps->compare, CompareAs::kValue);
  EXPECT_EQ(eps->curve, Curve::kChanges);
  EXPECT_EQ(eps->area, "arithmetic");
  EXPECT_FALSE(RuleOf("modules[].buckets[].offset"));
  EXPECT_EQ(RuleOf("modules[].storages[].offset")->compare, CompareAs::kPart);
  EXPECT_EQ(RuleOf("modules[].constants.moe.scale")->curve, Curve::kChanges);
  EXPECT_EQ(RuleOf("modules[].constants.mamba.chunk")->curve, Curve::kKeeps);
  EXPECT_EQ(RuleOf("budget.weight_decay.samples")->curve, Curve::kRates);
}

// Another value of the same kind.
Json AnotherValue(const Json& value) {
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_number_float()) return value.get<double>() + 1;
  if (value.is_number()) return value.get<int64_t>() + 1;
  if (value.is_string()) return value.get<std::string>() + "x";
  if (value.is_array()) {
    Json longer = value;
    longer.push_back(value.empty() ? Json("x") : value.back());
    return longer;
  }
  return "x";  // null
}

// Changes the first field of each pattern, one at a time, and calls `judge` with the pattern and the changed tree.
template <typename Judge>
void ChangeEach(Json& root, Json& node, const std::string& pattern, std::set<std::string>& done, const Judge& judge) {
  if (node.is_object()) {
    for (auto& [key, value] : node.items())
      ChangeEach(root, value, pattern.empty() ? key : pattern + "." + key, done, judge);
    return;
  }
  const std::optional<FieldRule> rule = RuleOf(InstructionPattern(pattern));
  const bool items = rule && rule->compare == CompareAs::kItems;
  if (!items && rule && rule->compare != CompareAs::kPart && done.insert(pattern).second) {
    Json kept = AnotherValue(node);
    std::swap(kept, node);
    judge(*rule, root);
    std::swap(kept, node);
  }
  if (!node.is_array()) return;
  for (Json& item : node) {
    if (item.is_object() && items) ChangeEach(root, item, pattern + "[]", done, judge);
  }
}

TEST(CompareFields, SeesAChangeOfAnyFieldAndJudgesIt) {
  const Json tree = FieldTree(CompiledFile(testing::kToy));
  Json changed = tree;
  std::set<std::string> done;
  ChangeEach(changed, changed, "", done, [&](const FieldRule& rule, const Json& other) {
    for (const bool rates : {false, true}) {
      const std::vector<PlanChange> changes = CompareFields(tree, other, rates);
      ASSERT_FALSE(changes.empty()) << rule.pattern << " changed and nobody saw it";
      bool may = false;
      for (const PlanChange& change : changes) {
        may |= change.may_change_loss;
        EXPECT_FALSE(change.effect.empty());
        EXPECT_FALSE(change.area.empty());
      }
      // A change of an item's name is one item gone and one new: the item's row judges it.
      if (rule.pattern.ends_with("[].name") || rule.pattern == "modules[].layers[].frame" ||
          rule.pattern.starts_with("schedule[]."))
        continue;
      EXPECT_EQ(may, rule.curve == Curve::kChanges || (rule.curve == Curve::kRates && rates)) << rule.pattern;
      EXPECT_EQ(changes.size(), 1u) << rule.pattern;
    }
  });
  EXPECT_GT(done.size(), 90u);
}

TEST(CompareFields, ItemsAreMatchedByNameAndNotByIndex) {
  const Json tree = FieldTree(CompiledFile(testing::kTiny));
  Json turned = tree;
  std::reverse(turned["groups"].begin(), turned["groups"].end());
  EXPECT_TRUE(CompareFields(tree, turned, false).empty());
  turned["groups"].erase(0);
  const std::vector<PlanChange> changes = CompareFields(tree, turned, false);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].to.is_null());
  EXPECT_EQ(changes[0].path.substr(0, 7), "groups.");
}

TEST(CompareFields, OneChangeTellsOfManyItems) {
  const Json tree = FieldTree(CompiledFile(testing::kTiny));
  Json other = tree;
  for (Json& parameter : other["modules"][1]["parameters"]) parameter["trained"] = false;
  const std::vector<PlanChange> changes = CompareFields(tree, other, false);
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].path, "modules.language.parameters.*.trained");
  EXPECT_EQ(changes[0].to, false);
  EXPECT_TRUE(changes[0].may_change_loss);
}

}  // namespace
}  // namespace planwright
