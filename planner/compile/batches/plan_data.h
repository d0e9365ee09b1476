// The plan's data: the recipe's section `data`, completed with sizes of the models (patch size, vocabulary), and the
// checks that need both. The sources of samples are described in docs/training/data.md#samples.
#pragma once

#include <optional>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// Token ids of the bytes tokenizer, after the bytes and the image token kBytesImageToken
// (docs/training/data.md#text-as-bytes).
inline constexpr int64_t kBytesPadToken = 257, kBytesEndToken = 258, kBytesVocabulary = 259;

// Nothing, with problems PW06xx, if a token id is outside the vocabulary, or images or samples do not fit.
std::optional<DataPlan> PlanData(const Recipe& recipe, Diagnostics& diagnostics);

// The same without lints: for samples that are not those of the recipe's steps.
std::optional<DataPlan> CheckedData(const Recipe& recipe, Diagnostics& diagnostics);

// The absolute folder of the file that contains `where`: paths in a recipe are relative to it. Empty without a
// location.
std::string FolderOf(const Location& where);

}  // namespace planwright
