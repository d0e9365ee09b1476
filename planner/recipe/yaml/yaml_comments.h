// What the text of a tree has beside values: comments, blank lines, and how values are written.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Adds them to `tree`, which ParseYaml made of this text. Comments belong to the key or dash that they are above or
// beside; those that are deeper than a key belong to the end of its block; those at the top, above a blank line, are
// the file's. `name`: of the file, for messages. Unimplemented, with the line, for forms of YAML that no recipe here
// has, such as `? key`.
absl::Status ReadComments(const std::string& text, const std::string& name, YamlNode& tree);

}  // namespace planwright
