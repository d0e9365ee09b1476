#include "planner/state/forms/name_pattern.h"

#include "absl/strings/ascii.h"

namespace planwright {
namespace {

// The next {WORD} of a pattern but {expert}: what is before it, and the word. None: all is plain text.
struct NextHole {
  std::string_view before, word, behind;
};
std::optional<NextHole> FindHole(std::string_view pattern) {
  for (size_t open = pattern.find('{'); open != std::string_view::npos; open = pattern.find('{', open + 1)) {
    const size_t close = pattern.find('}', open);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view word = pattern.substr(open + 1, close - open - 1);
    if (word != "expert") return NextHole{pattern.substr(0, open), word, pattern.substr(close + 1)};
  }
  return std::nullopt;
}

size_t Digits(std::string_view text) {
  size_t count = 0;
  while (count < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[count]))) ++count;
  return count;
}

}  // namespace

std::optional<std::string_view> AfterPattern(std::string_view pattern, std::string_view name, std::string_view encoder,
                                             NameNumbers& numbers) {
  while (const std::optional<NextHole> hole = FindHole(pattern)) {
    if (!name.starts_with(hole->before)) return std::nullopt;
    name.remove_prefix(hole->before.size());
    if (hole->word == "encoder") {
      if (!name.starts_with(encoder)) return std::nullopt;
      name.remove_prefix(encoder.size());
    } else {
      const size_t digits = Digits(name);
      if (digits == 0) return std::nullopt;
      const auto [known, added] = numbers.try_emplace(std::string(hole->word), name.substr(0, digits));
      if (!added && known->second != name.substr(0, digits)) return std::nullopt;
      name.remove_prefix(digits);
    }
    pattern = hole->behind;
  }
  if (!name.starts_with(pattern)) return std::nullopt;
  return name.substr(pattern.size());
}

std::optional<std::string> NameFrom(std::string_view pattern, std::string_view encoder, const NameNumbers& numbers) {
  std::string name;
  while (const std::optional<NextHole> hole = FindHole(pattern)) {
    name += hole->before;
    if (hole->word == "encoder") {
      name += encoder;
    } else {
      const auto number = numbers.find(hole->word);
      if (number == numbers.end()) return std::nullopt;
      name += number->second;
    }
    pattern = hole->behind;
  }
  return name.append(pattern);
}

}  // namespace planwright
