// The text of a recipe by lines and places: where values end, and where comments are. YamlNode has only beginnings.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

class SourceText {
 public:
  explicit SourceText(const std::string& text);

  // Lines count from 1, as in Location. Without spaces at the end.
  int lines() const { return static_cast<int>(lines_.size()); }
  const std::string& Line(int line) const { return lines_[static_cast<size_t>(line - 1)]; }
  bool IsBlank(int line) const { return Line(line).empty(); }
  bool IsComment(int line) const;
  size_t Indent(int line) const;  // columns before its first character

  // `node` as it is written, if it is on one line: a plain or quoted scalar.
  std::string Written(const YamlNode& node) const;
  bool IsFlow(const YamlNode& node) const;         // [..] or {..}
  bool IsBlockScalar(const YamlNode& node) const;  // | or >
  // The last line of a scalar or flow collection. `parent`: column of its key or dash, from 1; `limit`: a line that is
  // no longer of it.
  int LastLine(const YamlNode& node, int parent, int limit) const;
  // Where a comment begins in a line that no quote of the line before reaches: the column of `#`, from 0; npos: none.
  // `depth`: how many brackets are open before it.
  static size_t CommentAt(std::string_view line, int depth = 0);
  // All comments of the text, in their order, without the spaces around them. `tree`: of this text.
  std::vector<std::string> Comments(const YamlNode& tree) const;

 private:
  size_t Offset(const Location& where) const;
  int LineOf(size_t offset) const;
  size_t EndOfFlow(size_t at) const;
  // Marks the lines that are inside of scalars, whose `#` are text, and those that begin inside of brackets.
  void MarkScalars(const YamlNode& node, int parent, int limit, std::vector<bool>& inside,
                   std::vector<bool>& flow) const;

  std::string text_;
  std::vector<std::string> lines_;
  std::vector<size_t> starts_;
};

}  // namespace planwright
