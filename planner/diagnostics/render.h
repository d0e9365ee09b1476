// Problems as people and scripts read them.
//
//   recipes/vlm.yaml:14:9: error: grid of 48 ranks placed on 24 [PW0203 GridDoesNotFit]
//     14 |     tp: 4
//        |         ^
//     help: ...
//   recipes/vlm.yaml:9:12: note: module `language` was given 24 ranks here
//      9 |     ranks: 24
//        |            ^~
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "planner/diagnostics/diagnostic.h"
#include "planner/diagnostics/source_texts.h"

namespace planwright {

// Ends with a line break unless there are no problems. Control characters of messages and source lines are escaped.
std::string RenderText(const std::vector<Diagnostic>& problems, SourceTexts& texts, bool color);

// The `problems` array of `plan validate --json`: kind, name, severity, message, file, line, column, length, help,
// notes. A problem without a place has file null and line and column 0.
nlohmann::ordered_json RenderJson(const std::vector<Diagnostic>& problems);

}  // namespace planwright
