// Several runs beside each other: `plan report RUN RUN`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/views/report/run_report.h"

namespace planwright {

// A table with a line for each run: how far it is, its losses, its pace, and where its time went.
std::string OverlayText(const std::vector<RunReport>& reports, size_t width);

// One page: the same table, and curves over samples with a line for each run, so that runs whose steps have different
// sizes can be compared.
std::string OverlayPage(const std::vector<RunReport>& reports);

}  // namespace planwright
