// `plan show RECIPE --html FILE`: the plan as one page that needs nothing else: no network, no script, no fonts; light
// and dark as the reader's system asks. One file per section.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// The page. Well-formed: an XML reader reads it too. All that recipes say is escaped.
std::string PlanPage(const Plan& plan);

extern const char kPageStyle[];

// Sections of the page, as markup.
std::string RanksSection(const Plan& plan);
std::string GroupsSection(const Plan& plan);
std::string BridgesSection(const Plan& plan);
std::string ScheduleSection(const Plan& plan);
std::string BudgetSection(const Plan& plan);
std::string ModelSection(const Plan& plan);
std::string MemorySection(const Plan& plan);

// "m0" to "m5": the colour of a module (style.cc); a module that the plan does not have is "band".
std::string ModuleColor(const Plan& plan, std::string_view module);

}  // namespace planwright
