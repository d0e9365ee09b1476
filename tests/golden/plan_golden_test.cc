// The planner makes the plans of plans.golden: those of the shipped recipes, of the layouts that tests train, and of
// layouts that bring out every form of a layer's blocks. UPDATE_GOLDENS=1 writes the file as the plans are now; read
// first what the test says without.
#include "tests/golden/plan_golden.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden/block_layouts.h"
#include "tests/numerics/layouts.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRoot = InSource() + "/";
const std::string kFile = InSource("tests/golden/plans.golden");

std::vector<std::string> ShippedRecipes() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot + std::string("recipes"))) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The shipped recipes in a folder of their own: beside the tree's an index may lie that somebody's run has made, and a
// plan is another one where its data are counted.
class CopiedRecipes {
 public:
  explicit CopiedRecipes(const std::string& name) : folder_(fs::path(::testing::TempDir()) / name) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    fs::copy(kRoot + std::string("recipes"), folder_ / "recipes", fs::copy_options::recursive);
  }
  ~CopiedRecipes() { fs::remove_all(folder_); }
  CopiedRecipes(const CopiedRecipes&) = delete;

  Plan Compiled(const std::string& name) const {
    return CompiledFile((folder_ / "recipes" / (name + ".yaml")).string());
  }

 private:
  const fs::path folder_;
};

// The layouts of a list, under names that begin with that of the list.
void AddAll(const std::string& list, const std::vector<Layout>& layouts, PlanGolden& made) {
  for (const Layout& layout : layouts)
    made.Add(list + "/" + layout.name, CompiledFile(kRoot + layout.recipe, Join(layout.overrides, layout.training)));
}

PlanGolden Made() {
  PlanGolden made;
  const CopiedRecipes recipes("plan_golden_made");
  for (const std::string& name : ShippedRecipes()) made.Add("recipes/" + name, recipes.Compiled(name));
  AddAll("blocks", BlockLayouts(), made);
  AddAll("tiny", AllLayouts(), made);
  AddAll("toy", ToyLayouts(), made);
  AddAll("decoder", DecoderLayouts(), made);
  return made;
}

std::string TextOf(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(PlanGolden, PlansAreThoseOfTheFile) {
  const PlanGolden made = Made();
  const std::string text = WriteGolden(made);
  if (std::getenv("UPDATE_GOLDENS") != nullptr) std::ofstream(kFile, std::ios::binary) << text;
  const std::string golden = TextOf(kFile);
  if (golden == text) return;
  const std::string differences = Differences(ReadGolden(golden), made);
  ADD_FAILURE()
      << (differences.empty() ? "the file is not in the form in which it is written\n" : differences)
      << "If this is meant: UPDATE_GOLDENS=1 build/bin/plan_golden_test. CONTRIBUTING.md says what the commit "
         "has to say.";
}

// The same recipes in another folder give the same plans: no path is under the digest.
TEST(PlanGolden, DigestsDoNotDependOnTheFolder) {
  const CopiedRecipes one("plan_golden_one"), other("plan_golden_in/another_folder");
  for (const std::string& name : ShippedRecipes()) {
    const Plan here = one.Compiled(name);
    EXPECT_EQ(here.digest, other.Compiled(name).digest) << name;
    EXPECT_EQ(here.digest.size(), 64u) << name;
  }
}

// Two small plans as a golden, and what it says of other plans.
class PlanGoldenReport : public ::testing::Test {
 protected:
  PlanGoldenReport() : plan_(CompiledFile(kRoot + std::string(kTinyRecipe))) {
    golden_.Add("one", plan_);
    golden_.Add("two", plan_);
  }
  // What the golden file says of `plan` under the name "one".
  std::string Of(const Plan& plan) const {
    PlanGolden now;
    now.Add("one", plan);
    now.Add("two", plan_);
    return Differences(ReadGolden(WriteGolden(golden_)), now);
  }
  Plan plan_;
  PlanGolden golden_;
};

TEST_F(PlanGoldenReport, IsEmptyForTheSamePlans) { EXPECT_EQ(Of(plan_), ""); }

TEST_F(PlanGoldenReport, NamesBlockAndInstruction) {
  Plan other = plan_;
  Block& layer = *std::find_if(other.blocks.begin(), other.blocks.end(),
                               [](const Block& b) { return b.name == "radio_encoder.layer.forward"; });
  const auto attention = std::find_if(layer.body.begin(), layer.body.end(),
                                      [](const Instruction& i) { return i.kind == OpKind::kPackedAttention; });
  ASSERT_NE(attention, layer.body.end());
  attention->attributes["heads"] = int64_t{3};
  EXPECT_THAT(Of(other),
              AllOf(HasSubstr("block radio_encoder.layer.forward differs from {\"op\":\"packed_attention\" on\n"),
                    HasSubstr("in 1 plan: one\n"), HasSubstr("{\"op\":\"packed_attention\",\"inputs\":"),
                    Not(HasSubstr("backward differs")), Not(HasSubstr("role")), Not(HasSubstr("module"))));
  layer.body.erase(attention);
  EXPECT_THAT(Of(other), HasSubstr("lines:\n"));
}

TEST_F(PlanGoldenReport, NamesModulesRolesAndTheRest) {
  Plan other = plan_;
  other.modules[0].buckets[0].elements += 2;
  other.roles[0].step.pop_back();
  other.budget.steps += 1;
  EXPECT_THAT(Of(other), AllOf(HasSubstr("module radio_encoder differs\n"), HasSubstr("role "),
                               HasSubstr("rest of the plan differs\n"), Not(HasSubstr("block "))));
}

TEST_F(PlanGoldenReport, NamesBlocksThatComeAndGo) {
  Plan other = plan_;
  other.blocks.back().name += ".again";
  EXPECT_THAT(Of(other), AllOf(HasSubstr("block " + other.blocks.back().name + " is new"),
                               HasSubstr("block " + plan_.blocks.back().name + " is gone")));
  other = plan_;
  std::rotate(other.blocks.begin(), other.blocks.begin() + 1, other.blocks.end());
  EXPECT_THAT(Of(other), HasSubstr("the order of the parts differs"));
}

TEST_F(PlanGoldenReport, SaysWhenOnlyTheWordsDiffer) {
  Plan other = plan_;
  Block& block = other.blocks.front();
  std::reverse(block.saved.begin(), block.saved.end());
  ASSERT_GT(block.saved.size(), 1u);
  EXPECT_THAT(Of(other), AllOf(HasSubstr("only the digest differs"), Not(HasSubstr("block"))));
}

TEST_F(PlanGoldenReport, NamesPlansThatComeAndGo) {
  PlanGolden now;
  now.Add("one", plan_);
  now.Add("three", plan_);
  EXPECT_EQ(Differences(golden_, now), "plans are gone\n  in 1 plan: two\nplans are new\n  in 1 plan: three\n");
}

}  // namespace
}  // namespace planwright::testing
