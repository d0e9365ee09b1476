// Text of a tree: two spaces a level, one blank line at most, double quotes, comments where they were
// (yaml_comments.h). Keys stay in their order.
#pragma once

#include <string>

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// The text of a recipe, which says the same when it is read again. Values that no text had, or that were changed, are
// written in one line if there is room, and else as a block. Empty: a tree without keys and comments.
std::string YamlText(const YamlNode& tree);

// A value on one line, wherever it stands: "{tp: 2, pp: 1}", "[1, 2]", "5", "\"a: b\"". ParseYaml reads it as the same
// value.
std::string FlowText(const YamlNode& node);

// A key as it is written.
std::string KeyText(const std::string& key);

// Lines as comments: "# a line". Spaces at their ends, and empty lines at the end, are left out.
std::vector<std::string> CommentLines(const std::string& text);

}  // namespace planwright
