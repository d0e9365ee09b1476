// "Did you mean": the known spelling closest to a wrong one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// Edits that turn `a` into `b`, ignoring case: insert, delete, replace, or swap two neighbours.
int EditDistance(std::string_view a, std::string_view b);

// The closest of `known`, if it is close enough to be what was meant (a third of its letters, at least one edit). The
// earlier one of equals.
std::optional<std::string> NearName(std::string_view wrong, const std::vector<std::string>& known);

// "did you mean `tp`?", or `otherwise` when nothing is near.
std::string NearNameHelp(std::string_view wrong, const std::vector<std::string>& known, std::string otherwise = "");

}  // namespace planwright
