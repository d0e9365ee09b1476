// What the files of sources say before a run: whether they are there, and what prepared shards say of their ids.
// Recipes are also checked where the data is not mounted, so a folder that is missing is only a warning, unless the
// recipe leaves token ids to its files.
#pragma once

#include "planner/compile/batches/looked_for.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// In Recipe::damaged: a prepared.json beside the shards cannot be read, is not on this machine, or is yet to be made
// with them, and may say what the recipe does not.
inline constexpr char kPreparedDamaged[] = "data.sources[].prepared";

// The recipe with the token ids that it leaves to its shards: image_token, pad_token and end_token of their
// prepared.json; with kPreparedDamaged where one cannot be read. Adds, for data of kind `sources`, at the line
// of the shards or of the path: PW0612 for files that do not exist, patterns without a match, shards that are no tar
// files, .bin files without an .idx that is one, and folders that are not here and would say the ids that are needed;
// PW0613 (lint) for other folders that are not on this machine, PW0112 (lint) for digests that nothing is compared
// with; PW0611 for prepared.json files that cannot be read, that differ, or that say something else than the recipe. Of
// the files of a pattern the first few thousand are looked for, and the first few opened: a launch reads all.
// `looked_for`: what is known of the files already, and what is found.
Recipe WithPreparedIds(const Recipe& recipe, LookedFor& looked_for, Diagnostics& diagnostics);
// The same, of a recipe that is checked once.
Recipe WithPreparedIds(const Recipe& recipe, Diagnostics& diagnostics);

// How many patterns of shards a recipe has, for its LookedFor.
int64_t CountPatterns(const Recipe& recipe);

}  // namespace planwright
