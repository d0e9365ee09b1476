// Lists of tensors and of problems in messages: a model has thousands of tensors, and a wrong folder lacks all of them.
// Names of files' tensors are anybody's text: here they are made printable, so that none of them adds a line of its
// own.
#pragma once

#include <string>
#include <vector>

namespace planwright {

// What a message says of one tensor: "missing: ", NAME, " [4, 8]".
struct TensorLine {
  std::string begin, name, end;
};
// A line each, in their order. More than three that differ in whole numbers between dots alone become one, at the place
// of the first: "missing: a.layers.N.up.weight [4, 8] (46 tensors, the first is a.layers.1.up.weight)".
std::vector<std::string> GroupedLines(const std::vector<TensorLine>& lines);

// So many lines of a list are shown to people; of the others their number is told.
inline constexpr size_t kMostLines = 100;

// "HEAD\n  line\n  line", with at most kMostLines lines.
std::string ListOf(const std::string& head, std::vector<std::string> lines);

// "a, b, c and 17 more".
std::string FirstOf(const std::vector<std::string>& names, size_t most);

}  // namespace planwright
