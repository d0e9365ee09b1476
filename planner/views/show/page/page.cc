#include "planner/views/show/page/page.h"

#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/views/show/node_runs.h"

namespace planwright {
namespace {

// Ids of the sections, for the links at the top. The order is that of PlanPage.
constexpr const char* kSections[] = {"ranks", "groups", "bridges", "schedule", "time", "budget", "model", "memory"};

std::string Header(const Plan& plan) {
  std::string text =
      Cat("<h1>", Escaped(plan.name), "</h1>\n<p class=\"soft\">", Counted(plan.world_size, "rank"), " on ",
          Counted(NodesOf(plan), "node"), " of ", plan.cluster.gpus_per_node, " (gpu ", Escaped(plan.cluster.gpu),
          ") · precision ", Escaped(plan.precision), " · plan <code>", Escaped(plan.digest.substr(0, 12)),
          "</code> · Planwright ", Escaped(plan.tool_version), "</p>\n<nav>");
  for (const char* section : kSections) text += Cat("<a href=\"#", section, "\">", section, "</a>");
  return text + "</nav>\n";
}

}  // namespace

std::string ModuleColor(const Plan& plan, std::string_view module) {
  constexpr size_t kColors = 6;
  for (size_t i = 0; i < plan.modules.size(); ++i) {
    if (plan.modules[i].name == module) return "m" + std::to_string(i % kColors);
  }
  return "band";
}

std::string PlanPage(const Plan& plan, const StepTime& time) {
  return Page(plan.name + " - plan", Cat(Header(plan), RanksSection(plan), GroupsSection(plan), BridgesSection(plan),
                                         ScheduleSection(plan, time), TimeSection(plan, time), BudgetSection(plan),
                                         ModelSection(plan), MemorySection(plan)));
}

}  // namespace planwright
