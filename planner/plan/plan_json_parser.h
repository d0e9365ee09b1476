// The text of a plan's file as a tree of JSON, within the limits of limits.h. Used by the reader only.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace planwright {

// InvalidArgument for text that is no JSON, for a field that an object has twice, and for more levels, values or fields
// of an object than limits.h allows. These are refused where they are met, so that no text costs much memory or time.
absl::StatusOr<nlohmann::ordered_json> ParsePlanJson(std::string_view text);

}  // namespace planwright
