// The text of a recipe in its one form (docs/help.md#form): keys in the order of the table, two spaces a level, one
// blank line at most, double quotes. Comments stay with the keys that they are above or beside, and lines end as they
// did.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// The formatted text, which says the same but for `edits`, with the same comments: this is checked. Unimplemented, with
// the line, for forms of YAML that no recipe here has, such as `? key`. Nothing, with reasons in `problems`, if the
// text is no YAML. `name`: of the file, for locations.
std::optional<absl::StatusOr<std::string>> FormatRecipe(const std::string& text, const std::string& name,
                                                        Diagnostics& problems, std::span<const Edit> edits = {});

// Whether two recipes say the same: values, the order of modules, and which values are text. Keys may have another
// order.
bool SameRecipe(const YamlNode& a, const YamlNode& b);

}  // namespace planwright
