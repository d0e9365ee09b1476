// JSON as a tree, within limits (json_limits.h), and a tree as JSON. Every text of JSON that Planwright reads goes
// through here.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "planner/base/json/json_limits.h"

namespace planwright {

// InvalidArgument for text that is no JSON, for a field that an object has twice, and for more bytes, levels, values or
// fields of an object than the limits allow. These are refused where they are met, so that no text costs much memory or
// time.
absl::StatusOr<nlohmann::json> ParseJson(std::string_view text, const JsonLimits& limits);
// The same, with the fields of an object in the order of the text. Finding one takes time in proportion to their
// number.
absl::StatusOr<nlohmann::ordered_json> ParseOrderedJson(std::string_view text, const JsonLimits& limits);

// One line, or lines indented by `indent` spaces a level. Bytes that are no UTF-8 (names of files may have some) become
// U+FFFD. A function of its own, because every file that calls json.dump() compiles nlohmann's writer again.
std::string JsonText(const nlohmann::json& json, int indent = -1);
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace planwright
