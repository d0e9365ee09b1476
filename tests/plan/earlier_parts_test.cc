#include "planner/plan/earlier_parts.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan_json.h"

namespace planwright {
namespace {

// A plan of an earlier version, with these groups of its module "language" beside the one that it uses.
Plan EarlierPlan(const std::vector<Group>& more) {
  Plan plan;
  plan.modules = {{.name = "language"}};
  plan.groups = {{.name = "language.dp_cp", .short_name = "dp_cp", .module = "language", .streams = {""}}};
  plan.groups.insert(plan.groups.end(), more.begin(), more.end());
  plan.digest = PlanDigest(plan);
  return plan;
}

TEST(DropEarlierParts, LeavesTheGroupsThatAreMadeNow) {
  using enum Axis;
  const Plan now = EarlierPlan({});
  Plan earlier = EarlierPlan({{.name = "language.mp", .short_name = "mp", .module = "language", .axes = {kTp, kPp}},
                              {.name = "language.tp_ep_mp",
                               .short_name = "tp_ep_mp",
                               .module = "language",
                               .view = View::kExpert,
                               .axes = {kExpertTp, kEp}}});
  ASSERT_NE(earlier.digest, now.digest);
  DropEarlierParts(earlier);
  EXPECT_EQ(WritePlan(earlier), WritePlan(now));
  Plan same = now;
  DropEarlierParts(same);
  EXPECT_EQ(WritePlan(same), WritePlan(now));
}

TEST(DropEarlierParts, LeavesGroupsThatNoEarlierVersionMade) {
  using enum Axis;
  const Group mp = {.name = "language.mp", .short_name = "mp", .module = "language", .axes = {kTp, kPp}};
  const std::vector<std::pair<const char*, void (*)(Group&)>> damages = {
      {"used", [](Group& group) { group.streams = {""}; }},
      {"other axes", [](Group& group) { group.axes = {kPp}; }},
      {"another view", [](Group& group) { group.view = View::kExpert; }},
      {"another name", [](Group& group) { group.name = "language.pm"; }},
      {"another short name", [](Group& group) { group.short_name = "pm"; }},
      {"a list of ranks", [](Group& group) { group.ranks = {0}; }}};
  for (const auto& [what, damage] : damages) {
    Group group = mp;
    damage(group);
    Plan plan = EarlierPlan({group});
    const std::string before = WritePlan(plan);
    DropEarlierParts(plan);
    EXPECT_EQ(WritePlan(plan), before) << what;
  }
}

// An expert layer whose `pre` declares this gradient, where it is made and where it is taken.
Plan ExpertsPlan(const std::optional<Layout>& gradient) {
  const Layout cut = {{Axis::kExpertTp, {AxisLayout::State::kSharded, 1}}};
  const Output rows = {"rows", {DType::kFp32, {int64_t{4}, int64_t{2}}, {}, Layout{}}},
               out = {"out", {DType::kFp32, {int64_t{4}, int64_t{2}}, {}, Layout{}}},
               pre = {"pre", {DType::kFp32, {int64_t{4}, int64_t{2}}, cut, gradient}};
  Block forward = {.name = "experts.forward", .inputs = {rows}};
  forward.body = {{.kind = OpKind::kExperts, .inputs = {"rows", "weights", "counts"}, .outputs = {out, pre}}};
  Block backward = {.name = "experts.backward", .takes = {rows, pre}};
  backward.body = {{.kind = OpKind::kExpertsGrad, .inputs = {"dout", "rows", "weights", "pre", "counts"}}};
  Plan plan;
  plan.blocks = {forward, backward};
  plan.digest = PlanDigest(plan);
  return plan;
}

TEST(DropEarlierParts, DropsTheGradientOfPre) {
  const Layout cut = {{Axis::kExpertTp, {AxisLayout::State::kSharded, 1}}};
  const Plan now = ExpertsPlan(std::nullopt);
  Plan earlier = ExpertsPlan(cut);
  ASSERT_NE(earlier.digest, now.digest);
  DropEarlierParts(earlier);
  EXPECT_EQ(WritePlan(earlier), WritePlan(now));
  // With another layout no earlier version made it.
  Plan other = ExpertsPlan(Layout{});
  const std::string before = WritePlan(other);
  DropEarlierParts(other);
  EXPECT_EQ(WritePlan(other), before);
}

}  // namespace
}  // namespace planwright
