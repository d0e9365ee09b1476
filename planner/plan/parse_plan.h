// The text of a plan's file as a tree of JSON, within the limits of limits.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/status/statusor.h"

namespace planwright {

// No more is read of a text than it takes to see that it is no plan: repeated fields, and more levels, values or fields
// of an object than limits.h allows are refused where they are met, before a tree is made of them.
absl::StatusOr<nlohmann::ordered_json> ParsePlan(std::string_view text);

}  // namespace planwright
