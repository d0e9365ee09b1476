#include "planner/state/dialect/take_dialect_lines.h"

#include <string>
#include <string_view>
#include <utility>

#include "planner/state/dialect/take_dialect_words.h"

namespace planwright {
namespace {

using RuleKind = DialectRule::Kind;

bool IsOption(std::string_view word) { return word == "within" || word == "unless" || word == "else" || word == "of"; }

// Whether one word is left before a mark or an option.
bool IsLastWord(const LineReader& line) {
  LineReader ahead = line;
  ahead.Take();
  return IsOption(ahead.Peek()) || ahead.Left().starts_with(":") || ahead.empty();
}

}  // namespace

// "layers = PATH letters", "layers = PATH | PATH words WORD LETTER, ...", "layers LETTER = PATH | PATH [else NUMBER]"
// or "blocks PATH | PATH"
std::optional<DialectLayers> TakeLayers(LineReader& line, const ModelStatement& statement) {
  DialectLayers layers;
  layers.line = line.line();
  if (line.TakeIf("blocks")) {
    layers.form = DialectLayers::Form::kBlocks;
    layers.paths = TakePaths(line);
    return layers;
  }
  if (!line.TakeIf("layers")) return std::nullopt;
  if (line.Peek() != "=") {
    layers.form = DialectLayers::Form::kNumber;
    layers.letter = TakeLetter(line, statement);
  }
  line.Need("=");
  layers.paths = TakePaths(line);
  if (layers.letter != 0 && line.TakeIf("else")) {
    layers.otherwise = static_cast<int64_t>(line.TakeNumber());
    line.Check(line.failed() || layers.otherwise > 0, "a model has at least one layer");
  }
  if (layers.letter == 0) {
    if (line.TakeIf("letters")) {
      layers.form = DialectLayers::Form::kLetters;
    } else {
      line.Need("words");
      do {
        std::string word = line.Take("a word of config.json");
        layers.words.emplace_back(std::move(word), TakeLetter(line, statement));
      } while (line.TakeIf(','));
    }
  }
  return layers;
}

// "LETTER [when FORMULA], LETTER [when FORMULA] ..."
void TakePlace(LineReader& line, const ModelStatement& statement, Dialect& dialect) {
  DialectLayers* blocks = nullptr;
  for (DialectLine& each : dialect.lines) {
    auto* layers = std::get_if<DialectLayers>(&each);
    if (layers != nullptr && layers->form == DialectLayers::Form::kBlocks) blocks = layers;
  }
  if (blocks == nullptr) return line.Check(false, "no line `blocks` is before it");
  DialectPlace place;
  place.line = line.line();
  do {
    line.Check(place.choices.empty() || place.choices.back().when, "no letter comes behind one without a condition");
    DialectPlace::Choice& choice = place.choices.emplace_back();
    choice.letter = TakeLetter(line, statement);
    if (line.TakeIf("when")) choice.when = DialectFormula::Take(line);
  } while (line.TakeIf(','));
  line.Check(line.failed() || !place.choices.back().when, "the last letter has no condition, as each block has one");
  blocks->places.push_back(std::move(place));
}

// "LETTER behind PATH | PATH [else VALUE]", or "LETTER in language"
DialectInsert TakeInsert(LineReader& line, const ModelStatement& statement) {
  DialectInsert insert;
  insert.line = line.line();
  insert.letter = TakeLetter(line, statement);
  if (line.TakeOneOf({"behind", "in"}) == "in") {
    line.Need("language");
    return insert;
  }
  insert.paths = TakePaths(line);
  if (line.TakeIf("else")) insert.otherwise = TakeValue(line, true);
  return insert;
}

// "[each] PATH ... [VALUE] [within NUMBER] [unless NUMBER] [else VALUE] [of LETTER]: WHY"
bool TakeRule(LineReader& line, const ModelStatement& statement, Dialect& dialect) {
  constexpr std::pair<const char*, RuleKind> kRules[] = {{"only", RuleKind::kOnly},
                                                         {"nothing", RuleKind::kNothing},
                                                         {"note", RuleKind::kNote},
                                                         {"copied", RuleKind::kCopied},
                                                         {"silent", RuleKind::kSilent}};
  for (const auto& [word, kind] : kRules) {
    if (!line.TakeIf(word)) continue;
    DialectRule rule;
    rule.kind = kind;
    rule.line = line.line();
    const bool only = kind == RuleKind::kOnly;
    rule.each = only && line.TakeIf("each");
    while (!line.Peek().empty() && !IsOption(line.Peek())) {
      if (only && !rule.paths.empty() && IsLastWord(line)) break;
      rule.paths.push_back(line.Take());
    }
    line.Expect(!rule.paths.empty(), "a key of config.json");
    if (only) rule.value = TakeValue(line, true);
    if (only && line.TakeIf("within")) rule.within = TakeReal(line);
    const bool notes = kind == RuleKind::kNote || kind == RuleKind::kCopied;
    if (notes && line.TakeIf("unless")) rule.unless = TakeReal(line);
    if ((only || kind == RuleKind::kNothing) && line.TakeIf("else")) rule.otherwise = TakeValue(line, true);
    rule.of = TakeOfLayer(line, statement);
    rule.why = TakeFreeText(line, "why");
    dialect.lines.emplace_back(std::move(rule));
    return true;
  }
  return false;
}

}  // namespace planwright
