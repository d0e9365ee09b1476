#include "planner/state/weights/python_json.h"

#include <array>

namespace planwright {

std::string WithTaggedFloats(std::string_view text) {
  constexpr std::array<std::string_view, 3> kWords = {"-Infinity", "Infinity", "NaN"};
  std::string result;
  result.reserve(text.size());
  bool in_text = false;
  for (size_t at = 0; at < text.size();) {
    std::string_view word;
    if (!in_text) {
      for (const std::string_view each : kWords) {
        if (text.substr(at).starts_with(each)) word = each;
        if (!word.empty()) break;
      }
    }
    if (!word.empty()) {
      result.append("{\"__float__\": \"").append(word).append("\"}");
      at += word.size();
      continue;
    }
    if (in_text && text[at] == '\\' && at + 1 < text.size())
      result += text[at++];
    else if (text[at] == '"')
      in_text = !in_text;
    result += text[at++];
  }
  return result;
}

}  // namespace planwright
