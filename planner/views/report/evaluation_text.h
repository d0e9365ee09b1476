// What a report says of evaluations and of the losses of sources, in the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/views/report/run_report.h"

namespace planwright {

// "evaluation of step 30: held_out 2.9512 (icons 2.8, text 3.1), least 2.9401 of step 20", a line; empty: there is
// none.
std::string EvaluationText(const RunReport& report);

// "loss by source (mean of 20 steps): icons 2.95, text 3.25", a line; empty: steps do not say it.
std::string SourcesText(const RunReport& report);

// The loss of a set in `count` columns on the axis of the steps: in each that of the last evaluation before it. Empty
// for fewer than two evaluations.
std::vector<double> EvaluationColumns(const RunReport& report, const std::string& set, size_t count);

}  // namespace planwright
