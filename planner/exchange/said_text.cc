#include "planner/exchange/said_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace planwright {

std::string Listed(const std::vector<std::string>& names, const std::string& last) {
  if (names.size() < 2) return absl::StrJoin(names, "");
  return absl::StrCat(absl::StrJoin(names.begin(), names.end() - 1, ", "), last, names.back());
}

std::string Filled(const std::string& text, const std::function<const Said*(std::string_view)>& find) {
  std::string filled;
  size_t at = 0;
  for (size_t open = text.find('{'); open != std::string::npos; open = text.find('{', at)) {
    const size_t close = text.find('}', open);
    if (close == std::string::npos) break;
    std::string_view name = std::string_view(text).substr(open + 1, close - open - 1);
    const bool number = name.starts_with('=');
    if (number) name.remove_prefix(1);
    const Said* said = find(name);
    absl::StrAppend(&filled, text.substr(at, open - at),
                    said == nullptr ? text.substr(open, close + 1 - open)
                    : number        ? said->text()
                                    : said->from);
    at = close + 1;
  }
  return filled + text.substr(at);
}

std::string Filled(const std::string& text, const SaidPart& part) {
  return Filled(text, [&](std::string_view name) { return part.FindName(name); });
}

}  // namespace planwright
