#include "planner/state/dialect/dialect_formula.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

struct Function {
  string_view name;
  char operation = 0;
  int arguments = 1;
};
constexpr Function kFunctions[] = {{"floor", 'f'},  {"sqrt", 's'},   {"log", 'l'},
                                   {"min", 'm', 2}, {"max", 'M', 2}, {"ratio", 'r', 2}};

bool InWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

double RatioOf(double part, double whole) {
  double ratio = part / whole;
  for (int i = 0; i < 2; ++i, ratio = std::nextafter(ratio, INFINITY)) {
    if (std::floor(whole * ratio) == part) return ratio;
  }
  return std::nan("");
}

}  // namespace

// A recursive descent parser. Each function takes its part off the front and appends to the code. Once there is a
// problem, nothing more is taken.
class DialectFormula::Parser {
 public:
  Parser(string_view text, DialectFormula& formula) : all_(text), rest_(text), formula_(formula) {}

  // or [? choice : choice]
  void Choice() {
    Chain("or", '|', [this] { Chain("and", '&', [this] { Condition(); }); });
    if (!TakeMark('?')) return;
    Choice();
    if (!TakeMark(':')) return Fail("the formula needs a `:` here, and what holds if the condition does not");
    Choice();
    Add('?');
  }

  string_view rest() const { return rest_; }
  std::optional<FormulaFault>& problem() { return problem_; }

 private:
  // `next` WORD `next` ...
  template <typename Next>
  void Chain(string_view word, char operation, const Next& next) {
    next();
    while (TakeWord(word)) {
      next();
      Add(operation);
    }
  }

  // [not] sum [= < > sum]
  void Condition() {
    if (TakeWord("not")) {
      Condition();
      return Add('!');
    }
    Sum();
    for (const char operation : {'=', '<', '>'}) {
      if (!TakeMark(operation)) continue;
      Sum();
      return Add(operation);
    }
  }

  void Sum() {
    Product();
    for (char mark = TakeOne("+-"); mark != 0; mark = TakeOne("+-")) {
      Product();
      Add(mark);
    }
  }

  void Product() {
    Operand();
    for (char mark = TakeOne("*/%"); mark != 0; mark = TakeOne("*/%")) {
      Operand();
      Add(mark);
    }
  }

  void Operand() {
    if (TakeMark('(')) {
      Choice();
      return Close();
    }
    const string word(NextWord());
    if (word.empty()) return Fail(Cat("the formula needs a number or a name here, found ", Found()));
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return Number(word);
    const size_t end = word.size();
    const bool called = end < rest_.size() && rest_[end] == '(';
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Function& each) { return each.name == word; });
    if (called && function != std::end(kFunctions)) return Call(*function);
    if (!called) return Name(word);
    const size_t close = rest_.find(')', end);
    if (word != "given" || close == string_view::npos) return Fail(Cat(Quoted(word), " is no function"));
    Name(string(rest_.substr(0, close + 1)));
  }

  void Call(const Function& function) {
    Drop(function.name.size() + 1);
    for (int i = 0; i < function.arguments; ++i) {
      if (i > 0 && !TakeMark(',')) return Fail(Cat(string(function.name), " has ", function.arguments, " arguments"));
      Choice();
    }
    Close();
    Add(function.operation);
  }

  void Close() {
    if (!TakeMark(')')) Fail("the bracket of the formula is not closed");
  }

  // "0.02", "1e-5".
  void Number(string word) {
    if ((word.ends_with('e') || word.ends_with('E')) && rest_.size() > word.size() && rest_[word.size()] == '-') {
      size_t end = word.size() + 1;
      while (end < rest_.size() && std::isdigit(static_cast<unsigned char>(rest_[end]))) ++end;
      word = rest_.substr(0, end);
    }
    double number = 0;
    if (!absl::SimpleAtod(word, &number) || !std::isfinite(number)) return Fail(Cat(Quoted(word), " is no number"));
    formula_.code_.push_back({0, -1, number});
    Drop(word.size());
  }

  // names_ has each name once, and the code refers to it by its index.
  void Name(string name) {
    Drop(name.size());
    std::vector<string>& names = formula_.names_;
    const auto known = std::find(names.begin(), names.end(), name);
    formula_.code_.push_back({0, static_cast<int>(known - names.begin())});
    if (known == names.end()) names.push_back(std::move(name));
  }

  void Add(char operation) {
    if (!problem_) formula_.code_.push_back({operation});
  }

  // The word or the mark that comes next, behind spaces.
  void SkipSpaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  string_view NextWord() {
    if (problem_) return "";
    SkipSpaces();
    return rest_.substr(0, static_cast<size_t>(std::find_if_not(rest_.begin(), rest_.end(), InWord) - rest_.begin()));
  }
  bool TakeWord(string_view word) {
    const string_view before = rest_;
    if (NextWord() != word || word.empty()) return rest_ = before, false;
    Drop(word.size());
    return true;
  }
  bool TakeMark(char mark) {
    const string_view before = rest_;
    if (problem_) return false;
    SkipSpaces();
    if (rest_.empty() || rest_.front() != mark) return rest_ = before, false;
    Drop(1);
    return true;
  }
  char TakeOne(string_view marks) {
    for (const char mark : marks) {
      if (TakeMark(mark)) return mark;
    }
    return 0;
  }
  void Drop(size_t size) {
    if (problem_) return;
    if (++parts_ > kMostFormulaParts) return Fail(Cat("a formula has at most ", kMostFormulaParts, " parts"));
    rest_.remove_prefix(size);
  }

  string Found() const { return rest_.empty() ? "the end" : Quoted(rest_.substr(0, 1)); }
  void Fail(string message) {
    if (!problem_) problem_ = FormulaFault{all_.size() - rest_.size(), std::move(message)};
  }

  const string_view all_;
  string_view rest_;
  DialectFormula& formula_;
  size_t parts_ = 0;
  std::optional<FormulaFault> problem_;
};

DialectFormula DialectFormula::Take(LineReader& line) {
  DialectFormula formula;
  const string_view left = line.Left();
  Parser parser(left, formula);
  parser.Choice();
  if (const auto& problem = parser.problem()) {
    line.Fail(line.line()->text().size() - left.size() + problem->at, 1, problem->message);
    formula.names_.clear();
    formula.code_ = {{0, -1, std::nan("")}};
    return formula;
  }
  const string_view read = left.substr(0, left.size() - parser.rest().size());
  formula.text_ = read.substr(0, read.find_last_not_of(' ') + 1);
  line.Skip(read.size());
  return formula;
}

void DialectFormula::Apply(char operation, std::vector<double>& stack) {
  const auto pop = [&stack] {
    const double top = stack.back();
    stack.pop_back();
    return top;
  };
  if (operation == '?') {
    const double otherwise = pop(), then = pop(), condition = pop();
    return stack.push_back(std::isnan(condition) ? condition : condition != 0 ? then : otherwise);
  }
  const double right = pop();
  if (operation == 'f') return stack.push_back(std::floor(right));
  if (operation == 's') return stack.push_back(std::sqrt(right));
  if (operation == 'l') return stack.push_back(std::log(right));
  if (operation == '!') return stack.push_back(std::isnan(right) ? right : static_cast<double>(right == 0));
  const double left = pop();
  // Comparing NaN would give 0, and hide that a name has no value.
  const bool nothing = std::isnan(left) || std::isnan(right);
  const auto push = [&](double number) { stack.push_back(nothing ? std::nan("") : number); };
  switch (operation) {
    case '+': return push(left + right);
    case '-': return push(left - right);
    case '*': return push(left * right);
    case '/': return push(left / right);
    case '%': return push(std::fmod(left, right));
    case '=': return push(static_cast<double>(left == right));
    case '<': return push(static_cast<double>(left < right));
    case '>': return push(static_cast<double>(left > right));
    case '&': return push(static_cast<double>(left != 0 && right != 0));
    case '|': return push(static_cast<double>(left != 0 || right != 0));
    case 'm': return push(std::min(left, right));
    case 'M': return push(std::max(left, right));
    default: return push(RatioOf(left, right));
  }
}

}  // namespace planwright
