// The page of a plan: it is well-formed, complete by itself and escaped, holds everything, draws nothing outside its
// drawings, and stays small however large the world is.
#include "planner/views/show/page/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "planner/views/show/timeline.h"
#include "tests/views/show/markup_reader.h"
#include "tests/views/show/small_budget.h"

namespace planwright {
namespace {

using testing::Element;
using ::testing::HasSubstr;
using testing::MarkupReader;
using ::testing::Not;

// A role for each stage, of ranks that hold a bucket of 40 GB (in fp32, with one shard) over the stages.
void AddRoles(Plan& plan) {
  for (Module& module : plan.modules) {
    const int count = module.grid.ranks() / module.grid.pp;
    for (int stage = 0; stage < module.grid.pp; ++stage) {
      Bucket bucket;
      bucket.elements = 2'500'000'000 / module.grid.pp;
      bucket.stage = stage;
      module.buckets.push_back(bucket);
      Role role;
      role.name = module.name + ".s" + std::to_string(stage);
      role.modules = {module.name};
      role.ranks = {{module.grid.first_rank + stage * count, count, 1}};
      plan.roles.push_back(role);
    }
  }
}

// An encoder of `encoder` lanes and a language model of `stages` stages of tp2 and ep, on nodes of eight.
Plan PlanOf(int encoder, int lanes, int stages, int ep) {
  Plan plan;
  plan.name = "page";
  plan.modules.resize(2);
  Module &vision = plan.modules[0], &language = plan.modules[1];
  vision.name = "encoder";
  vision.grid = {0, 1, 1, encoder, 1, 1, 1, encoder};
  vision.layers = {{'V', "encoder.layers.0", 10, 20}};
  language.name = "language";
  language.grid = {encoder, 2, 1, lanes, stages, 1, ep, 2 * lanes / ep};
  language.layers = {{'M', "language.layers.0", 100, 5}, {'E', "language.layers.1", 200, 6}};
  plan.world_size = encoder + language.grid.ranks();
  plan.cluster = {(plan.world_size + 7) / 8, 8, "none"};
  plan.groups = {{"world", "world"},
                 {"language.tp", "tp", "language", View::kDense, {Axis::kTp}},
                 {"language.ep", "ep", "language", View::kExpert, {Axis::kEp}}};
  for (Group& group : plan.groups) group.streams = {""};
  Bridge bridge{"bridge.encoder.language", "encoder", "language", "fan_out"};
  for (int lane = 0; lane < lanes; ++lane)
    bridge.forward.push_back({lane % encoder, encoder + 2 * lane, lane, lane + 1});
  plan.bridges = {bridge};
  plan.schedule = {{"encoder", 0, 1, {"F0", "F1", "B0", "B1"}}};
  for (int stage = 0; stage < stages; ++stage)
    plan.schedule.push_back({"language", stage, 0, {"F0", "B0", "F1", "B1"}});
  plan.cluster.gpu = "h100_sxm";
  AddRoles(plan);
  plan.budget = testing::SmallBudget(0.0);
  return plan;
}

// Elements of a tag that have a class among others.
size_t Count(const std::vector<Element>& elements, const std::string& tag, const std::string& class_word) {
  size_t count = 0;
  for (const Element& element : elements) {
    if (element.tag != tag || !element.attributes.contains("class")) continue;
    std::istringstream words(element.attributes.at("class"));
    for (std::string word; words >> word;) count += word == class_word;
  }
  return count;
}

std::string PageOf(const Plan& plan) { return PlanPage(plan, TimeStep(plan)); }

TEST(PlanPage, HoldsEveryRankTransferAndOperation) {
  for (const Plan& plan : {PlanOf(4, 2, 1, 4), PlanOf(8, 128, 1, 8), PlanOf(32, 96, 4, 16)}) {
    const std::vector<Element> elements = MarkupReader(PageOf(plan)).Read();
    EXPECT_EQ(Count(elements, "g", "rank"), static_cast<size_t>(plan.world_size));
    EXPECT_EQ(Count(elements, "path", "wire"), plan.bridges[0].forward.size());
    size_t operations = 0;
    for (const TimelineRow& row : TimelineOf(plan).rows) operations += row.ops.size();
    EXPECT_EQ(Count(elements, "g", "op"), operations);
    EXPECT_EQ(Count(elements, "path", "curve"), 2u);
    std::set<std::string> ranks, sections;
    for (const Element& element : elements) {
      if (element.attributes.contains("data-rank")) ranks.insert(element.attributes.at("data-rank"));
      if (element.tag == "section") sections.insert(element.attributes.at("id"));
    }
    EXPECT_EQ(ranks.size(), static_cast<size_t>(plan.world_size));
    EXPECT_THAT(sections,
                ::testing::IsSupersetOf({"ranks", "groups", "bridges", "schedule", "time", "budget", "model"}));
  }
}

TEST(PlanPage, DrawsMemoryOfEachRoleAgainstTheDevice) {
  const Plan plan = PlanOf(4, 2, 2, 4);
  const std::string page = PageOf(plan);
  const std::vector<Element> elements = MarkupReader(page).Read();
  EXPECT_EQ(Count(elements, "g", "memory"), 3u);
  EXPECT_EQ(Count(elements, "line", "limit"), 3u);
  for (const char* text : {"h100_sxm, 84.93 GB", "optimizer 20.00 GB", "parameters 10.00 GB", "language.s1"})
    EXPECT_THAT(page, HasSubstr(text));
  Plan full = plan;
  full.modules[0].buckets[0].elements *= 3;
  EXPECT_THAT(PageOf(full), HasSubstr(": does not fit"));
  Plan toy = plan;
  toy.cluster.gpu = "none";
  for (Module& module : toy.modules) {
    for (Bucket& bucket : module.buckets) bucket.elements = 1'000'000;
  }
  EXPECT_THAT(PageOf(toy), HasSubstr("optimizer 8.00 MB"));
  EXPECT_EQ(Count(MarkupReader(PageOf(toy)).Read(), "line", "limit"), 0u);
}

TEST(PlanPage, NeedsNothingButItself) {
  const std::string page = PageOf(PlanOf(8, 128, 1, 8));
  for (const char* outside : {"http", "//", "<script", "url(", "src=", "@import", "<iframe"})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
}

TEST(PlanPage, EscapesWhatRecipesSay) {
  Plan plan = PlanOf(4, 2, 1, 4);
  const std::string evil = "</title><script>alert('1')</script>&\"\x01\n";
  plan.name = plan.modules[0].name = plan.modules[0].model = plan.cluster.gpu = plan.bridges[0].from =
      plan.schedule[0].module = evil;
  plan.modules[0].layers[0].frame = plan.budget.segments[0].kind = plan.groups[0].short_name = plan.bridges[0].kind =
      evil;
  const std::string page = PageOf(plan);
  EXPECT_NO_THROW(MarkupReader(page).Read());
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("&lt;/title&gt;&lt;script&gt;alert(&#39;1&#39;)"));
}

TEST(PlanPage, DrawsNothingOutsideItsDrawings) {
  for (const Plan& plan : {PlanOf(4, 2, 1, 4), PlanOf(8, 128, 1, 8), PlanOf(32, 96, 4, 16)}) {
    for (const Element& element : MarkupReader(PageOf(plan)).Read()) {
      if (element.tag != "rect") continue;
      std::istringstream box(element.svg);
      double left = 0, top = 0, width = 0, height = 0;
      box >> left >> top >> width >> height;
      const auto number = [&](const char* name) { return std::stod(element.attributes.at(name)); };
      EXPECT_GE(number("x"), 0);
      EXPECT_GE(number("y"), 0);
      EXPECT_LE(number("x") + number("width"), width + 0.2) << element.attributes.at("class");
      EXPECT_LE(number("y") + number("height"), height + 0.2) << element.attributes.at("class");
    }
  }
}

TEST(PlanPage, StaysSmallWhenTheWorldGrows) {
  EXPECT_LT(PageOf(PlanOf(32, 96, 4, 16)).size(), 1'500'000u);
  const Plan huge = PlanOf(1024, 65024, 1, 8);
  ASSERT_EQ(huge.world_size, 131072);
  const std::string page = PageOf(huge);
  EXPECT_LT(page.size(), 1'500'000u);
  EXPECT_EQ(Count(MarkupReader(page).Read(), "g", "rank"), 16u) << "two kinds of nodes";
  EXPECT_THAT(page, HasSubstr("nodes 128-16383"));
  EXPECT_THAT(page, HasSubstr("rank 1024+8n"));
}

TEST(PlanPage, DrawsColocatedModulesAsStripesOfOneRank) {
  Plan plan = PlanOf(4, 2, 1, 4);
  plan.modules[1].grid.first_rank = 0;
  plan.world_size = 4;
  plan.bridges[0].kind = "colocated";
  const std::vector<Element> elements = MarkupReader(PageOf(plan)).Read();
  EXPECT_EQ(Count(elements, "g", "rank"), 4u);
  EXPECT_GE(Count(elements, "rect", "m0"), 4u);
  EXPECT_GE(Count(elements, "rect", "m1"), 4u);
}

TEST(PlanPage, APlanOfOneModuleIsAPageToo) {
  Plan plan;
  plan.name = "bare";
  plan.world_size = 1;
  plan.modules.resize(1);
  plan.modules[0].name = "language";
  plan.budget.learning_rate.style = plan.budget.weight_decay.style = "constant";
  EXPECT_NO_THROW(MarkupReader(PageOf(plan)).Read());
}

}  // namespace
}  // namespace planwright
