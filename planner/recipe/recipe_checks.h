// Checks of a recipe beyond single keys: keys that contradict each other, and settings that would have no effect. Each
// value has already passed the checks of its own key (key_checks.h). Sizes of models and grids are checked in topology,
// rates in budget, bridges and samples in their rooms.
#pragma once

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"
#include "planner/recipe/recipe_fields.h"

namespace planwright {

// The section `data`, after the modules are read. `fields`: the section as written, to tell a missing key from a wrong
// one.
void CheckDataSettings(const Recipe& recipe, const RecipeFields& fields, Diagnostics& problems);

// Keys of `checkpoint` that contradict each other or have no effect (PW0109).
void CheckCheckpointSettings(const CheckpointRecipe& checkpoint, Diagnostics& problems);

// `evaluation`: names of sets (PW0107, PW0109), a set that has not what its kind of data is made of, or more (PW0102,
// PW0109), and evaluations between steps (PW0110). `checkpoint.keep_best`: a set that there is (PW0108), and a
// checkpoint at each evaluation (PW0109).
void CheckEvaluationSettings(const Recipe& recipe, Diagnostics& problems);

// `optimizer.parts`: a part without rates (PW0102), a learning rate beside a schedule whose peak is 0 (PW0109), and
// more parts than there may be (PW0006).
void CheckRatePartSettings(const Recipe& recipe, Diagnostics& problems);

// `initialize`: neither or both of from and sources (PW0102, PW0109), sources of what is no part (PW0108), of a part
// twice (PW0109) or of no part (PW0102), and keys that a file of weights cannot fill (PW0109). Whether other paths name
// a checkpoint is known at the launch.
void CheckInitializeSettings(const Recipe& recipe, const InitializeRecipe& initialize, Diagnostics& problems);

// `launch`: words of slurm that sbatch or a shell could take for something else (PW0107), times that are none (PW0104),
// options that the plan gives or that are there twice, and keys without effect (PW0109).
void CheckLaunchSettings(const Recipe& recipe, Diagnostics& problems);

// All modules: that a parameter is trained at all (PW0508), keys of a module that contradict each other (PW0109),
// recompute of layers that a module does not have (PW0509), and a frozen encoder with random crops (lint PW0507). Of
// the models: a number that has no effect beside the word of a choice (PW0109), and a router that chooses one expert,
// and does not say what its weight is (PW0102).
void CheckModuleSettings(const Recipe& recipe, Diagnostics& problems);

}  // namespace planwright
