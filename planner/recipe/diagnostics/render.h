// Diagnostics as text for people and as JSON for scripts.
//
// The text, with the lines of the recipe that the problems point at:
//
//   recipes/vlm.yaml:14:9: error: grid of 48 ranks placed on 24 [PW0203 GridDoesNotFit]
//     14 |     tp: 4
//        |         ^
//     help: ...
//   recipes/vlm.yaml:9:12: note: module `language` was given 24 ranks here
//      9 |     ranks: 24
//        |            ^~
//
// Warnings follow the errors, in one line each, and then their count.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nlohmann/json_fwd.hpp"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

// The lines of the files that problems point at.
class SourceTexts {
 public:
  // Sets the text of a source that is not a file, such as the overrides of the command line.
  void Add(const std::string& name, const std::string& text);

  // Line `number` (from 1) of `file` without its line break; null if there is no such line. Files are read when they
  // are first asked for. A file that cannot be read has no lines.
  const std::string* Line(const std::string& file, int number);

 private:
  std::map<std::string, std::vector<std::string>> lines_;
};

// The text of all problems, with a line break at the end; empty if there are none. Control characters in messages and
// source lines are escaped.
std::string RenderText(const std::vector<Diagnostic>& problems, SourceTexts& texts, bool color);

// The `problems` array of `plan validate --json`: kind, name, severity, message, file, line, column, length, help,
// notes, edits. A problem without a location has file null and line and column 0.
nlohmann::ordered_json RenderJson(const std::vector<Diagnostic>& problems);

}  // namespace planwright
