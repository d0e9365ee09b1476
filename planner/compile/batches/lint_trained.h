// Lint PW0615: an evaluation set has samples that the run is trained on.
#pragma once

#include "planner/compile/batches/looked_for.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Of files the names are compared: a copy of another name is not found out. Shards are compared as the names that
// braces make, by what * ? [ match, and, where they can be seen, as the files that are found (`looked_for`). Of the
// names of all sources of the training, and of those of all sets, the first 65,536 are looked at.
void LintTrained(const Recipe& recipe, LookedFor& looked_for, Diagnostics& diagnostics);

}  // namespace planwright
