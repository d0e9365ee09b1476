// `plan report RUN --html FILE`: the report as one HTML page, by the means of planner/views/show/page: complete by
// itself, no network and no script, light or dark as the reader's system asks.
#pragma once

#include <string>

#include "planner/views/report/run_report.h"

namespace planwright {

// The page. It is well-formed, so an XML reader can read it too. All texts of files are made printable and escaped. Its
// size is bounded whatever the number of steps.
std::string ReportPage(const RunReport& report);

}  // namespace planwright
