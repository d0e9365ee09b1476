// All that `plan explain` explains: the subjects of planner/recipe/explain, and the commands with their options.
#pragma once

#include <vector>

#include "planner/recipe/explain/subjects.h"

namespace planwright {

std::vector<Subject> ExplainedSubjects();

}  // namespace planwright
