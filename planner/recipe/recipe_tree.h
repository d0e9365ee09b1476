// A recipe file, the files that it extends, and the overrides of the command line, merged into one tree.
//
// The order is: the files of `extends`, then the file itself, then the overrides. Later ones win: maps merge key by
// key, lists and scalars replace. One exception: a map with another `kind` replaces the whole map before it, because
// each kind has its own keys.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "planner/base/text/location.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// The file name that problems in overrides are reported with. Its line i is overrides[i - 1].
inline constexpr char kCommandLine[] = "<command line>";

// The merged tree, without the key `extends`. Nothing, with the reasons in `problems`, if a file cannot be read. A file
// that is not there is reported, and read as the one whose name is near (meant_file.h); so is a slip in its text
// (meant_text.h). An override that cannot be read is reported and left out.
std::optional<YamlNode> ReadRecipeTree(const std::string& path, const std::vector<std::string>& overrides,
                                       Diagnostics& problems);

// The same of a text that is no file. `name`: what its locations have for a file; files that it extends are relative to
// the folder of that name.
std::optional<YamlNode> RecipeTreeOfText(const std::string& text, const std::string& name, Diagnostics& problems);

// Lays overrides over a tree. One that cannot be read is reported and left out. False if there are too many: none of
// them is laid.
bool ApplyOverrides(const std::vector<std::string>& overrides, YamlNode& tree, Diagnostics& problems);
// The same where a message has no place. InvalidArgument: one that cannot be read, with what is wrong.
absl::Status LayOverrides(const std::vector<std::string>& overrides, YamlNode& tree);

// The path of a file that a recipe names: absolute paths as they are, others relative to the folder of the file that
// names them (relative to the current folder for an override).
std::string ResolvePath(const std::string& path, const Location& named_at);

}  // namespace planwright
