// "Did you mean ...?": finds the known name that is closest to a misspelled one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// The smallest number of edits that turn `a` into `b`, ignoring case. An edit inserts, deletes or replaces one letter,
// or swaps two neighbours (optimal string alignment distance).
int EditDistance(std::string_view a, std::string_view b);

// The name of `known` that is closest to `wrong`, if at most a third of the letters differ (one edit is always
// allowed). The first one if several are equally close. None that cannot be printed: names may come from a user's text.
std::optional<std::string> NearName(std::string_view wrong, const std::vector<std::string>& known);

// The help of a diagnostic: "did you mean `tp`?", or `otherwise` if no name is close.
std::string NearNameHelp(std::string_view wrong, const std::vector<std::string>& known, std::string otherwise = "");

}  // namespace planwright
