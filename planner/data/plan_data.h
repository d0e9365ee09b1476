// Where samples come from, resolved: the recipe's data section with what the models settle (patch size, vocabulary),
// and the checks that need both. Sources and packing: design, `data.kind`.
#pragma once

#include <optional>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Further token ids of the bytes tokenizer.
inline constexpr int64_t kBytesPadToken = 257, kBytesEndToken = 258, kBytesVocabulary = 259;

// Nothing, with problems of 06xx, when ids fall outside the vocabulary or images cannot fit.
std::optional<DataPlan> PlanData(const Recipe& recipe, Diagnostics& diagnostics);

// Folder of the file that names a path, from the root on; "" where the place is unknown.
std::string FolderOf(const Location& where);

}  // namespace planwright
