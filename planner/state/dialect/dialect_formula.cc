#include "planner/state/dialect/dialect_formula.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <optional>
#include <utility>

#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/formula_reader.h"

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

double RatioOf(double part, double whole) {
  double ratio = part / whole;
  for (int i = 0; i < 2; ++i, ratio = std::nextafter(ratio, INFINITY)) {
    if (std::floor(whole * ratio) == part) return ratio;
  }
  return std::nan("");
}

}  // namespace

// A recursive descent parser. Each function takes its part off the front and appends to the code.
class DialectFormula::Parser : public FormulaReader {
 public:
  Parser(string_view text, DialectFormula& formula) : FormulaReader(text), formula_(formula) {}

  // or [? choice : choice]
  void Choice() {
    Chain("or", '|', [this] { Chain("and", '&', [this] { Condition(); }); });
    if (!TakeMark('?')) return;
    Choice();
    if (!TakeMark(':')) return Fail("the formula needs a `:` here, and what holds if the condition does not");
    Choice();
    Add('?');
  }

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
    for (char mark = TakeOneOf("+-"); mark != 0; mark = TakeOneOf("+-")) {
      Product();
      Add(mark);
    }
  }

  void Product() {
    Operand();
    for (char mark = TakeOneOf("*/%"); mark != 0; mark = TakeOneOf("*/%")) {
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
    if (word.empty()) return NeedOperand();
    if (std::isdigit(static_cast<unsigned char>(word[0]))) return Number(word);
    const size_t end = word.size();
    const bool called = end < rest().size() && rest()[end] == '(';
    const auto* function = std::find_if(std::begin(kFunctions), std::end(kFunctions),
                                        [&](const Function& each) { return each.name == word; });
    if (called && function != std::end(kFunctions)) return Call(*function);
    if (!called) return word == kBlockNumber ? Block() : Name(word);
    const size_t close = rest().find(')', end);
    if (word != "given" || close == string_view::npos) return Fail(Cat(Quoted(word), " is no function"));
    Name(string(rest().substr(0, close + 1)));
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
    if ((word.ends_with('e') || word.ends_with('E')) && rest().size() > word.size() && rest()[word.size()] == '-') {
      size_t end = word.size() + 1;
      while (end < rest().size() && std::isdigit(static_cast<unsigned char>(rest()[end]))) ++end;
      word = rest().substr(0, end);
    }
    formula_.code_.push_back({0, -1, NumberOf(word)});
    Drop(word.size());
  }

  void Name(const string& name) {
    Drop(name.size());
    formula_.code_.push_back({0, PlaceOfName(name, formula_.names_)});
  }

  // "i" or "i in NAME"
  void Block() {
    Drop(kBlockNumber.size());
    string name(kBlockNumber);
    if (TakeWord("in")) {
      const string list(NextWord());
      if (list.empty()) return Fail("the formula needs the name of a list here");
      Drop(list.size());
      name = Cat(string(kBlockIsIn), list);
    }
    formula_.code_.push_back({0, PlaceOfName(name, formula_.names_)});
  }

  void Add(char operation) {
    if (!problem()) formula_.code_.push_back({operation});
  }

  DialectFormula& formula_;
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
