#include <algorithm>

#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/views/show/page/page.h"
#include "planner/views/show/quantities.h"
#include "planner/views/show/time_words.h"

namespace planwright {
namespace {

std::string RolesTable(const StepTime& time) {
  HtmlTable table({"role", "ranks", "busy", "exposed communication", "waiting", "launching", "waits most for"});
  for (size_t r = 0; r < time.roles.size(); ++r) {
    const RoleTime& role = time.roles[r];
    table.Add({Escaped(NameOfRanks(role)), WithCommas(role.count()), ShareText(role.busy, time.length),
               ShareText(role.communication, time.length), ShareText(role.waiting, time.length),
               ShareText(role.launching, time.length), Escaped(WaitsForText(time, r))});
  }
  return table.Markup();
}

std::string CostsTable(const StepTime& time) {
  HtmlTable table({"part", "kind", "of a step", "known"});
  for (size_t i = 0; i < std::min(kMostCosts, time.costs.size()); ++i) {
    const StepCost& cost = time.costs[i];
    table.Add({Escaped(cost.part), Escaped(cost.kind), ShareText(cost.seconds, time.length),
               cost.work() ? KnownText(KnownShares(cost)) : ""});
  }
  return table.Markup();
}

}  // namespace

std::string TimeSection(const Plan& plan, const StepTime& time) {
  if (!(time.length > 0)) return Section("time", "Time", "<p>Nothing takes time.</p>\n");
  const std::string speed = time.seconds ? SpeedText(plan, time) + " " + KnownSentence(plan, time)
                                         : "The speed of the device is unknown: shares are of the FLOPs of a step.";
  const std::string saves = SaveText(plan, time);
  return Section(
      "time", "Time",
      Cat("<p>As predicted: ", Escaped(speed), "</p>\n", saves.empty() ? "" : Cat("<p>", Escaped(saves), "</p>\n"),
          RolesTable(time), "<p class=\"soft\">The largest costs, on average over all ranks:</p>\n", CostsTable(time)));
}

}  // namespace planwright
