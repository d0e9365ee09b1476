// `plan show RECIPE --html FILE`: a plan as one HTML page. The page is complete by itself: no network, no script, no
// fonts. It is light or dark as the reader's system asks. One file for each section: ranks_section.cc, ...
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/predict/estimate/step_time.h"

namespace planwright {

// The page. It is well-formed, so an XML reader can read it too. All text from the recipe is escaped. Its size is
// bounded whatever the number of ranks: sections summarize what is too much to draw. `time`: the predicted step.
std::string PlanPage(const Plan& plan, const StepTime& time);

// Sections of the page, as markup. Each draws what the `show` subject of its name prints.
std::string RanksSection(const Plan& plan);
std::string GroupsSection(const Plan& plan);
std::string BridgesSection(const Plan& plan);
std::string ScheduleSection(const Plan& plan, const StepTime& time);  // `time`: TimeStep of the plan
std::string TimeSection(const Plan& plan, const StepTime& time);
std::string BudgetSection(const Plan& plan);
std::string ModelSection(const Plan& plan);
std::string MemorySection(const Plan& plan);

// The class that colors a module: "m0" to "m5" in the order of the plan's modules, in turn (style.cc). "band", a
// neutral color, for a module that the plan does not have.
std::string ModuleColor(const Plan& plan, std::string_view module);

}  // namespace planwright
