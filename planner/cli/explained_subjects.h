// All that `plan explain` explains: the subjects of planner/explain, and the commands with their options.
#pragma once

#include <vector>

#include "planner/explain/subjects.h"

namespace planwright {

std::vector<Subject> ExplainedSubjects();

}  // namespace planwright
