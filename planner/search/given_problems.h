// Problems of a recipe as it was given, before its layouts are searched.
#pragma once

#include <vector>

#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// Whether another layout may be without these problems: all errors among them are about what a search changes. Of a
// recipe with any other error no layout is valid.
bool LayoutsMayEnd(const std::vector<Diagnostic>& problems);

}  // namespace planwright
