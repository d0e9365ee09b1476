// Values that are allowed, and hardly ever meant: far from what trainings use, or without effect on anything.
#pragma once

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Warnings: numbers far from those that trainings use, betas in the wrong order, a warmup that looks like steps,
// weights that look like a name of the Hugging Face hub and are no folder, and adapters that PEFT does not open
// (PW0111); keys of images without an encoder, and of damaged documents without any that can be (PW0112); models that
// no module names (PW0113). `tree`: of the recipe. Keys and models of files that it extends are no mistakes of it.
void LintValues(const Recipe& recipe, const YamlNode& tree, Diagnostics& problems);

}  // namespace planwright
