// JSON as text, for files, the terminal and the wire.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace planwright {

// One line, or lines indented by `indent` spaces a level. Bytes that are no UTF-8 (names of files may have some) become
// U+FFFD. A function of its own, because every file that calls json.dump() compiles nlohmann's writer again.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);
std::string JsonText(const nlohmann::json& json, int indent = -1);

}  // namespace planwright
