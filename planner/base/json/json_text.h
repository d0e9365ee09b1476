// JSON as a tree, within limits (json_limits.h), and a tree as JSON. Every text of JSON that Planwright reads goes
// through here.
#pragma once

#include <functional>
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

// The same for an object of a million fields, as a tree takes many times the memory of its text: each field of the
// object under `key` of the text's own object (empty: of that object itself) is given to `visit` when it has been read,
// and is not kept; its name may come twice. Returns the rest. A status of `visit` that is not OK ends it.
using FieldVisitor = std::function<absl::Status(std::string name, nlohmann::json value)>;
absl::StatusOr<nlohmann::json> ParseFields(std::string_view text, const JsonLimits& limits, const std::string& key,
                                           const FieldVisitor& visit);
// What is said of a field that an object has twice.
std::string GivenTwice(const std::string& field);

// One line, or lines indented by `indent` spaces a level. Bytes that are no UTF-8 (names of files may have some) become
// U+FFFD. A function of its own, because every file that calls json.dump() compiles nlohmann's writer again.
std::string JsonText(const nlohmann::json& json, int indent = -1);
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace planwright
