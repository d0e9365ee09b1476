#include "planner/state/dialect/take_dialect_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/pixel_norm.h"
#include "planner/plan/statement/take_words.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

bool IsNumberWord(string_view word) {
  double number = 0;
  return !word.empty() && (std::isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-') &&
         absl::SimpleAtod({word.data(), word.size()}, &number) && std::isfinite(number);
}

string JsonListOf(const std::array<double, 3>& numbers) {
  return absl::StrFormat("[%.17g,%.17g,%.17g]", numbers[0], numbers[1], numbers[2]);
}

// "NAME x FORMULA", "any" or a formula.
DialectSize TakeSize(LineReader& line) {
  DialectSize size;
  if (line.TakeIf("any")) {
    size.any = "any";
    return size;
  }
  size.formula = DialectFormula::Take(line);
  if (!line.TakeIf("x")) return size;
  size.any = size.formula->text();
  size.formula = DialectFormula::Take(line);
  return size;
}

// "[..]PATTERN [SIZES] [is VALUE|copy of NAME | NAME ... [unless KEY VALUE]]: WHAT, WHO"
void ParseExtra(LineReader& line, Dialect& dialect) {
  DialectExtra& extra = dialect.extras.emplace_back();
  extra.line = line.line();
  extra.kind = dialect.kind;
  extra.pattern = line.Take("the name of a tensor");
  extra.anywhere = extra.pattern.starts_with("...");
  if (extra.anywhere) extra.pattern.erase(0, 3);
  if (line.TakeIf('[')) {
    extra.sizes.emplace();
    do extra.sizes->push_back(TakeSize(line));
    while (line.TakeIf(','));
    line.Need(']');
  }
  if (line.TakeIf("is")) {
    extra.is = TakeValue(line, false);
  } else if (line.TakeIf("copy")) {
    line.Need("of");
    extra.copy_of = TakePaths(line);
    if (line.TakeIf("unless")) {
      extra.own_key = line.Take("a key of the recipe");
      extra.own_value = line.Take("a value of the recipe");
    }
  }
  const string text = TakeFreeText(line, "what the tensor is, and who needs it");
  const size_t comma = text.find(", ");
  line.Check(line.failed() || comma != string::npos,
             "behind the `:` the line says what the tensor is, and, behind a comma, who needs it");
  if (comma == string::npos) return;
  extra.what = text.substr(0, comma);
  extra.who = text.substr(comma + 2);
}

// "NAME ... [called WHAT]: TEXT"
void ParseHint(LineReader& line, bool called, std::vector<DialectHint>& hints) {
  DialectHint& hint = hints.emplace_back();
  hint.line = line.line();
  hint.names = TakeWordsTo(line, {"called"});
  line.Expect(!hint.names.empty(), "the name of a tensor");
  if (called) {
    line.Need("called");
    hint.called = absl::StrJoin(line.TakeWords(), " ");
  }
  hint.text = TakeFreeText(line, "what is said without it");
}

// "[alone] NAME [SIZES] [DTYPE] ones|zeros|counting|VALUE [: TEXT]"
void ParseMade(LineReader& line, Dialect& dialect) {
  DialectMade& made = dialect.made.emplace_back();
  made.line = line.line();
  made.alone = line.TakeIf("alone");
  made.name = line.Take("the name of a tensor");
  line.Need('[');
  do made.sizes.push_back(DialectFormula::Take(line));
  while (line.TakeIf(','));
  line.Need(']');
  made.dtype = DTypeFromName(line.Peek());
  if (made.dtype) line.Take();
  for (const char* fill : {"ones", "zeros", "counting"}) {
    if (made.fill.empty() && line.TakeIf(fill)) made.fill = fill;
  }
  if (made.fill.empty()) made.fill = TakeValue(line, false);
  if (!line.empty()) made.text = TakeFreeText(line, "what export says");
}

}  // namespace

DialectPaths TakePaths(LineReader& line) {
  DialectPaths paths;
  do paths.push_back(line.Take("a key of config.json"));
  while (line.TakeIf('|'));
  return paths;
}

bool IsValue(string_view word) {
  return word == "true" || word == "false" || word == "null" || word == "inf" || word == "pixel_mean" ||
         word == "pixel_deviation" || (word.size() > 1 && word.front() == '"' && word.back() == '"') ||
         IsNumberWord(word);
}

string TakeValue(LineReader& line, bool words) {
  if (line.TakeIf('[')) {
    std::vector<string> items;
    if (!line.TakeIf(']')) {
      do items.push_back(TakeValue(line, words));
      while (line.TakeIf(','));
      line.Need(']');
    }
    return absl::StrCat("[", absl::StrJoin(items, ","), "]");
  }
  const string word = line.Take("a value");
  if (word == "inf") return R"({"__float__":"Infinity"})";
  if (word == "pixel_mean") return JsonListOf(kClipNorm.mean);
  if (word == "pixel_deviation") return JsonListOf(kClipNorm.deviation);
  if (IsValue(word)) return word;
  line.Check(words && word.find_first_of("\"\\") == string::npos,
             Cat(Quoted(word), " is no value: expected a number, true, false, null, a list, or a word in quotes"));
  return absl::StrCat("\"", word, "\"");
}

double TakeReal(LineReader& line) {
  const string word = line.Take("a number");
  double number = std::nan("");
  if (!line.failed())
    line.Check(IsNumberWord(word) && absl::SimpleAtod(word, &number), Cat(Quoted(word), " is no number"));
  return number;
}

string TakeFreeText(LineReader& line, string_view what) {
  line.Need(':');
  line.Expect(line.failed() || !line.empty(), what);
  return line.Rest();
}

std::vector<string> TakeWordsTo(LineReader& line, std::initializer_list<string_view> ends) {
  std::vector<string> words;
  while (!line.Peek().empty() && std::find(ends.begin(), ends.end(), line.Peek()) == ends.end())
    words.push_back(line.Take());
  return words;
}

char TakeLetter(LineReader& line, const ModelStatement& statement) {
  const char letter = TakeKindOfLayer(line);
  line.Check(line.failed() || statement.FindLayer(letter) != nullptr,
             Cat("no kind of layers has the letter ", string(1, letter)));
  return letter;
}

char TakeOfLayer(LineReader& line, const ModelStatement& statement) {
  return line.TakeIf("of") ? TakeLetter(line, statement) : char{0};
}

bool ParseTensorLine(LineReader& line, Dialect& dialect) {
  if (dialect.forms.Take(line)) return true;
  if (line.TakeIf("extra")) return ParseExtra(line, dialect), true;
  if (line.TakeIf("optional")) return ParseHint(line, true, dialect.optional), true;
  if (line.TakeIf("missing")) return ParseHint(line, false, dialect.missing), true;
  if (line.TakeIf("make")) return ParseMade(line, dialect), true;
  if (line.Peek() != "language") return false;
  LineReader ahead = line;
  ahead.Take();
  if (ahead.Peek() == "in") return false;
  line.Take();
  line.Expect(dialect.language_forms.Take(line), "`in`, `names`, `tensor` or `form`");
  return true;
}

}  // namespace planwright
