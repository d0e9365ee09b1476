#include <algorithm>
#include <map>

#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/plan/ranks_text.h"
#include "planner/views/show/page/page.h"

namespace planwright {
namespace {

constexpr int kShown = 64;  // ranks of a strip

std::string AxesText(const Group& group) {
  std::string text;
  for (Axis axis : group.axes) text += (text.empty() ? "" : " ") + std::string(AxisName(axis));
  return text;
}

// The module's first ranks, each in the color of its group. Four colors take turns: neighboring groups differ.
std::string GroupStrip(const Module& module, const std::vector<std::vector<int>>& members) {
  constexpr const char* kColors[] = {"m0b", "m2b", "m3b", "m1b"};
  const int shown = std::min(kShown, module.grid.ranks());
  const double cell = std::clamp(384.0 / shown, 6.0, 14.0);
  std::vector<int> group_of(shown, 0);
  for (size_t i = 0; i < members.size(); ++i) {
    for (int rank : members[i]) {
      if (rank - module.grid.first_rank < shown) group_of[rank - module.grid.first_rank] = static_cast<int>(i);
    }
  }
  std::map<int, std::string> ranks_of;  // of each group, made once
  for (int group : group_of) {
    if (!ranks_of.contains(group)) ranks_of[group] = RanksText(members[group]);
  }
  Drawing drawing(shown * cell, 14, "who is together");
  for (int i = 0; i < shown; ++i) {
    drawing.Rect(i * cell, 0, cell - 1, 14, kColors[group_of[i] % 4],
                 Cat("rank ", module.grid.first_rank + i, ": ranks ", ranks_of[group_of[i]]));
  }
  return drawing.Markup();
}

// The cells of one row. Groups of a module are drawn as a strip; the world and bridges list their ranks.
std::vector<std::string> GroupRow(const Plan& plan, const Group& group) {
  const std::vector<std::vector<int>> members = MembersOf(plan, group);
  const Module* module = plan.FindModule(group.module);
  const size_t size = members.empty() ? 0 : members[0].size();
  std::string who = module && size > 1 ? GroupStrip(*module, members) : "";
  if (!module && !members.empty()) who = Cat("ranks ", RanksText(members[0]));
  if (module && size == 1) who = "<span class=\"soft\">each rank alone</span>";
  return {Escaped(group.short_name.empty() ? group.name : group.short_name),
          module ? std::string(ViewName(group.view)) : "",
          AxesText(group),
          WithCommas(static_cast<int64_t>(members.size())),
          WithCommas(static_cast<int64_t>(size)),
          who};
}

std::string GroupTable(const Plan& plan, const std::vector<const Group*>& groups) {
  HtmlTable table({"group", "view", "axes", "groups", "ranks each", "who is together"});
  for (const Group* group : groups) table.Add(GroupRow(plan, *group));
  return table.Markup();
}

}  // namespace

std::string GroupsSection(const Plan& plan) {
  std::string body = Cat("<p class=\"soft\">Ranks of one colour are one group", " (the first ", kShown,
                         " ranks of a module are drawn). Used groups of two or more ranks become communicators.</p>\n");
  std::vector<std::string> modules = {""};  // "": the world's and the bridges' groups
  for (const Module& module : plan.modules) modules.push_back(module.name);
  for (const std::string& module : modules) {
    std::vector<const Group*> used, unused;
    for (const Group& group : plan.groups) {
      if (group.module == module) (group.used() ? used : unused).push_back(&group);
    }
    if (used.empty() && unused.empty()) continue;
    body += Cat("<h3>", module.empty() ? "world and bridges" : Escaped(module), "</h3>\n");
    if (!used.empty()) body += GroupTable(plan, used);
    // A plan has all groups of a module, so that their order is the same in every plan. Those that another layout would
    // use are folded away.
    if (unused.empty()) continue;
    const char* what = unused.size() == 1 ? " group that no program uses" : " groups that no program uses";
    body += Cat("<details><summary>", unused.size(), what, "</summary>\n", GroupTable(plan, unused), "</details>\n");
  }
  return Section("groups", "Groups", body);
}

}  // namespace planwright
