#include "planner/run/slurm/node_list.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

namespace planwright {
namespace {

absl::Status Wrong(std::string_view list, const char* why) {
  return absl::InvalidArgumentError("the node list `" + std::string(list) + "` " + why);
}

bool IsNumber(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
}

int64_t NumberOf(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// "08-11,3": each number with the zeros that the first of its range has. None: it is no such list.
std::optional<std::vector<std::string>> Numbers(std::string_view ranges) {
  std::vector<std::string> numbers;
  while (true) {
    const size_t comma = std::min(ranges.find(','), ranges.size());
    const std::string_view range = ranges.substr(0, comma);
    const size_t dash = range.find('-');
    const std::string_view first = range.substr(0, std::min(dash, range.size()));
    const std::string_view last = dash == std::string_view::npos ? first : range.substr(dash + 1);
    if (!IsNumber(first) || !IsNumber(last) || NumberOf(last) < NumberOf(first) ||
        NumberOf(last) - NumberOf(first) >= static_cast<int64_t>(kMostNodes - numbers.size()))
      return std::nullopt;
    for (int64_t number = NumberOf(first); number <= NumberOf(last); ++number) {
      std::string text = std::to_string(number);
      if (text.size() < first.size()) text.insert(0, first.size() - text.size(), '0');
      numbers.push_back(std::move(text));
    }
    if (comma == ranges.size()) return numbers;
    ranges.remove_prefix(comma + 1);
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view list) {
  std::vector<std::string> nodes;
  size_t at = 0;
  while (at < list.size()) {
    std::vector<std::string> names = {""};  // of this item, as far as it is read
    for (; at < list.size() && list[at] != ','; ++at) {
      if (list[at] != '[') {
        for (std::string& name : names) name += list[at];
        continue;
      }
      const size_t end = list.find(']', at);
      if (end == std::string_view::npos) return Wrong(list, "has a bracket that is not closed");
      const auto numbers = Numbers(list.substr(at + 1, end - at - 1));
      if (!numbers) return Wrong(list, "has a bracket without ascending numbers");
      if (names.size() * numbers->size() > kMostNodes) return Wrong(list, "names too many nodes");
      std::vector<std::string> longer;
      for (const std::string& name : names) {
        for (const std::string& number : *numbers) longer.push_back(name + number);
      }
      names = std::move(longer);
      at = end;
    }
    if (names[0].empty()) return Wrong(list, "has an empty name");
    nodes.insert(nodes.end(), names.begin(), names.end());
    if (nodes.size() > kMostNodes) return Wrong(list, "names too many nodes");
    if (at < list.size() && ++at == list.size()) return Wrong(list, "has an empty name");
  }
  if (nodes.empty()) return Wrong(list, "is empty");
  return nodes;
}

}  // namespace planwright
