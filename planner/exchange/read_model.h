// The config.json of a model as sizes: which kind of model it is, and what leads from its encoder to its language model
// (docs/hugging_face.md#what-goes-in).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "planner/exchange/findings.h"
#include "planner/exchange/model_sizes.h"

namespace planwright {

// What a folder's config.json is of, by its model_type and the keys that it has.
enum class ConfigKind { kUnknown, kLanguage, kEncoder, kVisionLanguage };
ConfigKind KindOfConfig(const nlohmann::ordered_json& config);

// All numbers of the model. Without those that are problems; with any problem, they are of no use. `ignored`: paths of
// keys that may stay unread.
ModelSizes ReadModel(const nlohmann::ordered_json& config, const std::set<std::string>& ignored, Findings& findings);

}  // namespace planwright
