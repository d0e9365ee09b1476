// A curve drawn with box characters.
#pragma once

#include <string>
#include <vector>

namespace planwright {

// One column a value, `height` (2 or more) lines, the y axis to the left with its numbers; every line is indented by
// `indent` characters that the numbers are put into, from the right.
std::string LineChart(const std::vector<double>& values, int height, size_t indent);

// A ruler under a chart of `width` columns: parts with their names, "├ warmup ┼──── stable ────┼ decay ┤". `ends` are
// the parts' ends as fractions of the whole, ascending; a name that does not fit is left out.
std::string PartsRuler(const std::vector<std::string>& names, const std::vector<double>& ends, int width,
                       size_t indent);

}  // namespace planwright
