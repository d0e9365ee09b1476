#include "planner/base/paper/table.h"
#include "planner/plan/ranks_text.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

std::string AxesText(const Group& group) {
  std::string text;
  for (Axis axis : group.axes) text += (text.empty() ? "" : ",") + std::string(AxisName(axis));
  return text;
}

// The first groups and the last: "[0-1] [2-3] [4-5] ... [62-63]".
std::string MembersText(const std::vector<std::vector<int>>& members) {
  constexpr size_t kMost = 4;
  std::string text;
  for (size_t i = 0; i < members.size(); ++i) {
    if (members.size() > kMost && i == kMost - 1) return text + " ... [" + RanksText(members.back(), 3) + "]";
    text += (i > 0 ? " [" : "[") + RanksText(members[i], 3) + "]";
  }
  return text;
}

}  // namespace

std::string ShowGroups(const Plan& plan, size_t width) {
  Table table({"group", "view", "axes", "groups", "ranks each", "used", "members"});
  for (const Group& group : plan.groups) {
    const std::vector<std::vector<int>> members = MembersOf(plan, group);
    table.Add({group.name, group.module.empty() ? "" : std::string(ViewName(group.view)), AxesText(group),
               std::to_string(members.size()), members.empty() ? "0" : std::to_string(members[0].size()),
               group.used() ? "yes" : "", MembersText(members)});
  }
  return table.Text("", width);
}

nlohmann::ordered_json ShowGroupsJson(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  Json groups = Json::array();
  for (const Group& group : plan.groups) {
    Json axes = Json::array();
    for (Axis axis : group.axes) axes.push_back(AxisName(axis));
    const bool of_module = !group.module.empty();
    // Bridges and the world have no short name. The members are expanded here: the plan stores axes, and a reader of
    // the JSON should not need to know how ranks are counted.
    groups.push_back({{"name", group.short_name.empty() ? group.name : group.short_name},
                      {"full_name", group.name},
                      {"module", of_module ? Json(group.module) : Json()},
                      {"view", of_module ? Json(ViewName(group.view)) : Json()},
                      {"axes", std::move(axes)},
                      {"used", group.used()},
                      {"members", MembersOf(plan, group)}});
  }
  return {{"groups", std::move(groups)}};
}

}  // namespace planwright
