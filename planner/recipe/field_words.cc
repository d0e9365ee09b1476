#include "planner/recipe/field_words.h"

#include <unordered_map>

#include "absl/strings/ascii.h"

namespace planwright {
namespace {

constexpr FieldWord kWords[] = {
#define WORD(word, of, unit, keys, why) {word, of, FieldUnit::unit, keys, why},
#include "planner/recipe/field_words.def"
#undef WORD
};

constexpr ChoiceWord kChoiceWords[] = {
#define CHOICE(path, word, choice, why) {path, word, choice, why},
#include "planner/recipe/choice_words.def"
#undef CHOICE
};

// "--train-iters" and "TrainIters" are "train_iters", "NVIDIA H100" is "nvidia_h100".
std::string Plain(std::string_view written) {
  while (written.starts_with('-')) written.remove_prefix(1);
  std::string word;
  for (size_t i = 0; i < written.size(); ++i) {
    const char c = written[i];
    if (absl::ascii_isupper(c) && i > 0 && absl::ascii_islower(written[i - 1])) word += '_';
    word += c == '-' || c == ' ' ? '_' : absl::ascii_tolower(c);
  }
  return word;
}

}  // namespace

bool IsLike(std::string_view written, std::string_view pattern) {
  const std::string word = Plain(written);
  std::string_view left = word;
  bool anywhere = false;  // a * stands before the part
  while (true) {
    const size_t star = pattern.find('*');
    const std::string_view part = pattern.substr(0, star);
    if (star == std::string_view::npos) return anywhere ? left.ends_with(part) : left == part;
    const size_t at = anywhere ? left.find(part) : left.starts_with(part) ? 0 : std::string_view::npos;
    if (at == std::string_view::npos) return false;
    left.remove_prefix(at + part.size());
    pattern.remove_prefix(star + 1);
    anywhere = true;
  }
}

std::span<const FieldWord> FieldWords() { return kWords; }

const FieldWord* FindFieldWord(std::string_view written) {
  // A recipe is read again for each suggestion that is tried, so that searching counts.
  static const auto* words = [] {
    auto* all = new std::unordered_map<std::string_view, const FieldWord*>;
    for (const FieldWord& known : kWords) all->emplace(known.word, &known);
    return all;
  }();
  const std::string path = Plain(written);
  for (std::string_view word = path; !word.empty();) {
    if (const auto found = words->find(word); found != words->end()) return found->second;
    const size_t dot = word.find('.');
    word = dot == std::string_view::npos ? std::string_view() : word.substr(dot + 1);
  }
  return nullptr;
}

const ChoiceWord* FindChoiceWord(std::string_view path, std::string_view word) {
  for (const ChoiceWord& known : kChoiceWords) {
    if (known.path == path && IsLike(word, known.word)) return &known;
  }
  return nullptr;
}

}  // namespace planwright
