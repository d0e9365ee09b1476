#include "planner/recipe/meant_text.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"
#include "planner/recipe/tree_edits.h"
#include "planner/recipe/yaml/text_checks.h"

namespace planwright {
namespace {

// How a line may begin, and what is meant.
struct LineMend {
  std::string_view begins, meant, found, help;  // {list}: what the line is an item of
};
constexpr std::string_view kNoSpace = "an item of {list} begins with `-` and a space",
                           kSpace = "write a space after `-`";
constexpr LineMend kLineMends[] = {{"-{", "- {", kNoSpace, kSpace}, {"-[", "- [", kNoSpace, kSpace}};

// A line that is mended: what was meant is longer than what was written.
struct MendedLine {
  const LineMend* mend;
  int line, column;  // of the text, from 1
};

// Locations as the author sees the line.
void MoveBack(YamlNode& node, const MendedLine& mended) {
  const int longer = static_cast<int>(mended.mend->meant.size() - mended.mend->begins.size());
  const auto move = [&](Location& where) {
    if (where.line == mended.line && where.column > mended.column) where.column -= longer;
  };
  move(node.where);
  for (YamlNode& item : node.items) MoveBack(item, mended);
  for (YamlEntry& entry : node.entries) {
    move(entry.key_where);
    MoveBack(entry.value, mended);
  }
}

}  // namespace

std::optional<YamlNode> MeantTree(const std::string& text, const YamlOrigin& origin, Diagnostics& problems) {
  std::string meant;
  std::vector<MendedLine> mended;
  int line = 0;
  for (const std::string& written : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    if (line++ > 0) meant += '\n';
    const size_t first = std::min(written.find_first_not_of(' '), written.size());
    const std::string_view rest = std::string_view(written).substr(first);
    const LineMend* found = nullptr;
    for (const LineMend& mend : kLineMends) {
      if (rest.starts_with(mend.begins)) found = &mend;
    }
    if (found == nullptr) {
      meant += written;
      continue;
    }
    Append(meant, std::string(first, ' '), found->meant, rest.substr(found->begins.size()));
    mended.push_back({found, line, static_cast<int>(first) + 1});
  }
  std::optional<YamlNode> tree = mended.empty() ? std::nullopt : ParseValue(meant, origin);
  if (!tree || !tree->is_map()) return std::nullopt;
  for (const MendedLine& one : mended) MoveBack(*tree, one);
  for (const MendedLine& one : mended) {
    const int longer = static_cast<int>(one.mend->begins.size()) - 1;
    const Location where{origin.file, one.line, one.column, longer};
    const std::optional<TreePlace> item = PlaceAt(*tree, {origin.file, one.line, one.column + longer});
    const size_t open = item ? item->path.rfind('[') : std::string::npos;
    const std::string path = open == std::string::npos ? "" : item->path.substr(0, open);
    const std::string list = path.empty() ? "a list" : Cat("`", path, "`");
    problems
        .Error(DiagnosticKind::kYamlSyntax, where,
               absl::StrReplaceAll(std::string(one.mend->found), {{"{list}", list}}), std::string(one.mend->help))
        .edits = path.empty() ? std::vector<Edit>() : std::vector<Edit>{{path, FlowText(*NodeAt(*tree, path))}};
  }
  return tree;
}

}  // namespace planwright
