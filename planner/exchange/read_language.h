// The config of a nemotron_h language model as sizes (docs/hugging_face.md#what-goes-in). transformers and the remote
// code of published models have the same keys.
#pragma once

#include <set>
#include <string>

#include "planner/exchange/config_keys.h"
#include "planner/exchange/model_sizes.h"

namespace planwright {

// Reads every key of the object. What a recipe cannot express, and keys that are not known, are problems of `keys`.
LanguageSizes ReadLanguage(ConfigKeys& keys, const std::set<std::string>& ignored);

// Keys that every config of transformers may have, and that say nothing of a model's numbers.
void KnowCommonKeys(ConfigKeys& keys);

}  // namespace planwright
