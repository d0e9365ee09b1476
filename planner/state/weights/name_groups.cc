#include "planner/state/weights/name_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

constexpr size_t kAlone = 3;  // so many of a group are named each

bool IsNumber(const std::string& word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string PatternOf(const std::string& name) {
  std::vector<std::string> words = absl::StrSplit(name, '.');
  for (std::string& word : words) {
    if (IsNumber(word)) word = "N";
  }
  return absl::StrJoin(words, ".");
}

// The name of a group: numbers that all of its names share stay.
std::string NameOf(const std::vector<const TensorLine*>& group) {
  std::vector<std::string> common = absl::StrSplit(group.front()->name, '.');
  for (const TensorLine* line : group) {
    const std::vector<std::string> words = absl::StrSplit(line->name, '.');
    for (size_t i = 0; i < common.size(); ++i) {
      if (words[i] != common[i]) common[i] = "N";
    }
  }
  return absl::StrJoin(common, ".");
}

}  // namespace

std::vector<std::string> GroupedLines(const std::vector<TensorLine>& lines) {
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, std::vector<const TensorLine*>> groups;
  const auto key_of = [](const TensorLine& line) { return Key(line.begin, PatternOf(line.name), line.end); };
  for (const TensorLine& line : lines) groups[key_of(line)].push_back(&line);
  std::vector<std::string> texts;
  for (const TensorLine& line : lines) {
    const std::vector<const TensorLine*>& group = groups.at(key_of(line));
    if (group.size() <= kAlone) {
      texts.push_back(Printable(absl::StrCat(line.begin, line.name, line.end)));
    } else if (group.front() == &line) {
      texts.push_back(Printable(absl::StrCat(line.begin, NameOf(group), line.end, " (", group.size(),
                                             " tensors, the first is ", line.name, ")")));
    }
  }
  return texts;
}

std::string ListOf(const std::string& head, std::vector<std::string> lines) {
  const size_t more = lines.size() > kMostLines ? lines.size() - kMostLines : 0;
  lines.resize(lines.size() - more);
  return absl::StrCat(head, "\n  ", absl::StrJoin(lines, "\n  "),
                      more > 0 ? absl::StrCat("\n  and ", more, " more") : "");
}

std::string FirstOf(const std::vector<std::string>& names, size_t most) {
  const size_t shown = std::min(most, names.size());
  return absl::StrCat(Printable(absl::StrJoin(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", ")),
                      names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "");
}

}  // namespace planwright
