#include "planner/plan/statement/parse_keys.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/take_words.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;
using Form = StatedKey::Form;
using Type = StatedKey::Type;

// A larger size is a typing mistake, and the product of a few such sizes would exceed 64 bits.
constexpr double kLargestSize = 16777216;

// ": TEXT", up to the end of the line.
string TakeText(LineReader& line, string_view what) {
  line.Need(':');
  line.Expect(line.failed() || !line.empty(), what);
  return line.Rest();
}

string TakeHelp(LineReader& line) { return TakeText(line, "what the key is"); }

StatedKey KeyOf(Form form, string name, const LineReader& line) {
  StatedKey key;
  key.form = form;
  key.name = std::move(name);
  key.line = line.line();
  return key;
}

// A number as a recipe writes it, of this type. It stays NaN if there is none.
double TakeNumber(LineReader& line, Type type, string* text = nullptr) {
  const string word = line.Take("a number");
  double number = std::nan("");
  if (line.failed()) return number;
  const bool read = absl::SimpleAtod(word, &number) && std::isfinite(number);
  line.Check(read, Cat(Quoted(word), " is no number"));
  if (type == Type::kInteger)
    line.Check(word.find_first_not_of("0123456789") == string::npos, Cat(Quoted(word), " is no whole number from 0"));
  if (type == Type::kFlag) line.Check(word == "0" || word == "1", Cat(Quoted(word), " is neither 0 nor 1"));
  if (text) *text = word;
  return number;
}

// "[from|above N] [to|below N] [= DEFAULT]"
void TakeRange(LineReader& line, bool or_zero, StatedKey& key) {
  const bool real = key.type == Type::kReal, flag = key.type == Type::kFlag;
  const double widest = real ? kConstant.high : flag ? 1 : kLargestSize;
  NumberRange range = {or_zero || real ? 0.0 : 1.0, widest};
  range.above = real && !or_zero;
  const auto take_end = [&](const char* inside, const char* outside, double& end, bool& is_outside) {
    is_outside = line.Peek() == outside;
    if (!line.TakeIf(inside) && !line.TakeIf(outside)) return false;
    line.Check(!flag, "a flag has no range");
    end = TakeNumber(line, key.type);
    line.Check(line.failed() || (end >= 0 && end <= widest),
               Cat("the end is outside of 0 to ", static_cast<int64_t>(widest)));
    return true;
  };
  bool above = false;
  double low = 0;
  if (take_end("from", "above", low, above)) {
    range.low = low, range.above = above;
    range.or_zero = or_zero;
  }
  bool below = false;
  take_end("to", "below", range.high, below);
  range.below = below;
  line.Check(line.failed() || range.low < range.high, "no number is in the range");
  key.range = flag ? kAnyNumber : range;
  if (!line.TakeIf("=")) return;
  const double number = TakeNumber(line, key.type, &key.default_text);
  line.Check(line.failed() || key.range.Holds(number), "the default is outside of the range");
}

// "[with CHOICE WORD [or WORD ...]]"
void TakeWith(LineReader& line, StatedKey& key) {
  if (!line.TakeIf("with")) return;
  line.Check(!key.default_text.empty(), "a key that has an effect beside some words alone has a default");
  key.with = TakeName(line, "the choice on which the effect depends");
  do key.with_words.push_back(TakeName(line, "a word of the choice"));
  while (line.TakeIf("or"));
  line.Check(key.with_words.size() <= kMostListedNames, Cat("a line lists at most ", kMostListedNames, " names"));
}

}  // namespace

bool KeyParser::ParseLine(LineReader& line) {
  if (line.TakeIf("layer")) return ParseLayer(line), true;
  if (line.TakeIf("unbuilt")) return ParseUnbuilt(line), true;
  if (line.TakeIf("layers")) return ParseLayers(line), true;
  if (line.TakeIf("section")) return ParseSection(line), true;
  if (line.TakeIf("constant")) return ParseConstant(line), true;
  if (line.TakeIf("choice")) return ParseChoice(line), true;
  if (line.TakeIf("key")) return ParseNumber(line), true;
  return false;
}

// "LETTER WORD [opens]: TITLE"
void KeyParser::ParseLayer(LineReader& line) {
  StatedLayer& layer = model_.layer_kinds.emplace_back();
  layer.line = line.line();
  layer.letter = TakeKindOfLayer(line);
  layer.word = TakeName(line, "the word of the kind of layers");
  layer.opens = line.TakeIf("opens");
  layer.title = TakeText(line, "what such layers are");
  line.Check(model_.layer_kinds.size() <= kMostLayerKinds,
             Cat("a model has at most ", kMostLayerKinds, " kinds of layers"));
}

// "LETTER [not with LETTERS]: TITLE"
void KeyParser::ParseUnbuilt(LineReader& line) {
  StatedLayer& layer = model_.unbuilt.emplace_back();
  layer.line = line.line();
  layer.letter = TakeKindOfLayer(line);
  if (line.TakeIf("not")) {
    line.Need("with");
    layer.not_with = line.Take("letters of layers");
  }
  layer.title = TakeText(line, "what such layers are");
  line.Check(model_.unbuilt.size() <= kMostLayerKinds,
             Cat("at most ", kMostLayerKinds, " kinds of layers are refused by name"));
}

// "pattern [such as LETTERS]: HELP" or "LETTERS: HELP", or both, one behind the other
void KeyParser::ParseLayers(LineReader& line) {
  const string word = line.Take("`pattern` or the letters of layers");
  const bool pattern = word == "pattern";
  StatedKey key = KeyOf(Form::kLayers, pattern ? "pattern" : "layers", line);
  const bool twice = std::any_of(model_.keys.begin(), model_.keys.end(), [&](const StatedKey& other) {
    return other.form == Form::kLayers && other.name == key.name;
  });
  line.Check(!twice, Cat("the text says twice what `", key.name, "` is"));
  if (pattern && line.TakeIf("such")) {
    line.Need("as");
    model_.example = line.Take("letters of layers");
  }
  if (!pattern) {
    model_.repeated = word;
    // A plan lists layers one by one. With more of them the planner would run out of memory before it could refuse the
    // plan (docs/limits.md).
    key.range = {1, static_cast<double>(kMostLayers / std::max<size_t>(word.size(), 1))};
  }
  key.required = true;
  key.help = TakeHelp(line);
  model_.keys.push_back(std::move(key));
}

// "NAME [of LETTER|required]: HELP"
void KeyParser::ParseSection(LineReader& line) {
  StatedKey key = KeyOf(Form::kSection, TakeName(line, "the name of a section"), line);
  line.Check(key.name.find('.') == string::npos, "a section is in no other one");
  if (line.TakeIf("of")) {
    key.of = TakeKindOfLayer(line);
  } else {
    key.required = line.TakeIf("required");
  }
  key.help = TakeHelp(line);
  model_.keys.push_back(std::move(key));
}

// "NAME int|real|flag [or 0] [of LETTER] [else FORMULA] [given] [from|above N] [to|below N] [= DEFAULT]
// [with CHOICE WORD [or WORD ...]] [: HELP]"
void KeyParser::ParseConstant(LineReader& line) {
  StatedConstant& constant = model_.constants.emplace_back();
  constant.line = line.line();
  constant.name = TakeName(line, "the name of a constant");
  const string type = line.TakeOneOf({"int", "real", "flag"});
  constant.real = type == "real";
  constant.flag = constant.or_zero = type == "flag";
  if (line.TakeIf("or")) {
    line.Need("0");
    constant.or_zero = true;
  }
  if (line.TakeIf("of")) constant.of = TakeKindOfLayer(line);
  ParseOtherwise(line, constant);
  constant.given = line.TakeIf("given");
  if (line.empty() || constant.given) return;
  StatedKey key = KeyOf(Form::kConstant, constant.name, line);
  key.type = constant.real ? Type::kReal : constant.flag ? Type::kFlag : Type::kInteger;
  TakeRange(line, constant.or_zero, key);
  TakeWith(line, key);
  key.required = key.default_text.empty() && !constant.otherwise;
  key.help = TakeHelp(line);
  model_.keys.push_back(std::move(key));
}

// "[else FORMULA]"
void KeyParser::ParseOtherwise(LineReader& line, StatedConstant& constant) const {
  if (!line.TakeIf("else")) return;
  constant.otherwise = line.TakeFormula();
  for (const string& name : constant.otherwise->names()) {
    line.Check(EachHas(name, constant), Cat("the number of a module that lacks the constant is of ", Quoted(name),
                                            ", which is no constant before it that each such module has"));
  }
  const auto optional_flag = [](const StatedConstant& each) { return each.flag && each.otherwise; };
  const auto flags = std::count_if(model_.constants.begin(), model_.constants.end(), optional_flag);
  line.Check(!constant.flag || static_cast<size_t>(flags) <= kMostOptionalFlags,
             Cat("a model has at most ", kMostOptionalFlags, " flags that a module may lack"));
}

// Whether each module that can lack `constant` has this one, which is stated before it.
bool KeyParser::EachHas(string_view name, const StatedConstant& constant) const {
  return std::any_of(model_.constants.begin(), model_.constants.end(), [&](const StatedConstant& other) {
    return other.name == name && &other != &constant && !other.otherwise && (other.of == 0 || other.of == constant.of);
  });
}

// "NAME WORD N, WORD N ... [= DEFAULT] sets CONSTANT: HELP"
void KeyParser::ParseChoice(LineReader& line) {
  StatedKey key = KeyOf(Form::kChoice, TakeName(line, "the name of a key"), line);
  do {
    string word = TakeName(line, "a word that the key may be");
    const auto is_it = [&](const auto& other) { return other.first == word; };
    line.Check(std::none_of(key.words.begin(), key.words.end(), is_it), "the word is there twice");
    const double number = TakeNumber(line, Type::kInteger);
    line.Check(line.failed() || number <= kLargestSize,
               Cat("a constant is at most ", static_cast<int64_t>(kLargestSize)));
    key.words.emplace_back(std::move(word), line.failed() ? 0 : static_cast<int64_t>(number));
  } while (line.TakeIf(','));
  line.Check(key.words.size() <= kMostListedNames, Cat("a line lists at most ", kMostListedNames, " names"));
  key.required = !line.TakeIf("=");
  if (!key.required) {
    key.default_text = line.Take("the word that holds without the key");
    std::vector<string> words;
    for (const auto& [word, number] : key.words) words.push_back(word);
    if (!line.failed() && std::find(words.begin(), words.end(), key.default_text) == words.end())
      line.RefuseWord(Cat(Quoted(key.default_text), " is no word of the choice"), words);
  }
  line.Need("sets");
  key.sets = TakeName(line, "the constant that the choice sets");
  key.help = TakeHelp(line);
  model_.keys.push_back(std::move(key));
}

// "NAME int|real [or 0] [from|above N] [to|below N] [= DEFAULT]: HELP"
void KeyParser::ParseNumber(LineReader& line) {
  StatedKey key = KeyOf(Form::kNumber, TakeName(line, "the name of a key"), line);
  key.type = line.TakeOneOf({"int", "real"}) == "real" ? Type::kReal : Type::kInteger;
  const bool or_zero = line.TakeIf("or");
  if (or_zero) line.Need("0");
  TakeRange(line, or_zero, key);
  key.help = TakeHelp(line);
  model_.keys.push_back(std::move(key));
}

}  // namespace planwright
