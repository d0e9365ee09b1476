// Reads the config.json of a Hugging Face folder. It comes from strangers: nothing beyond kModelConfigJson is read.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace planwright {

inline constexpr char kConfigFile[] = "config.json";

// The object of FOLDER/config.json, with its fields in their order. InvalidArgument, with the path, if it is none;
// Unavailable if it cannot be read.
absl::StatusOr<nlohmann::ordered_json> ReadConfigFile(const std::string& folder);

// What it says of its language model: the object of this part, or all of a config.json without parts.
nlohmann::ordered_json LanguageOfConfig(const nlohmann::ordered_json& config);

}  // namespace planwright
