#include "planner/plan/op_signature.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "absl/strings/numbers.h"

namespace planwright {
namespace {

using std::string;

bool IsDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

SignatureDim ParseDim(const string& word, LineReader& line) {
  SignatureDim dim;
  dim.index = word[0];
  if (word == "_") return dim;  // whole, of any size
  if (IsDigit(word[0])) {
    line.Check(absl::SimpleAtoi(word, &dim.number), "a size of a dim is a name or a number");
    dim.index = '_';
    return dim;
  }
  if (word[0] == '(') {
    line.Check(word.size() > 2 && word.back() == ')', "the product of dims has no closing bracket");
    if (line.failed()) return dim;
    dim.index = word[1];
    for (char factor : word.substr(1, word.size() - 2)) dim.factors.emplace_back(1, factor);
    return dim;
  }
  if (word.back() != '~') dim.name = word;  // "f~": the index alone, with no size to compare
  return dim;
}

// Marks before the dims: "+w:", "!i:", "+!", "^w:".
void AddMarks(const string& marks, LineReader& line, OperandSignature& operand) {
  for (char mark : marks) {
    switch (mark) {
      case '+': operand.linear = true; break;
      case '!': operand.of_rank = true; break;
      case '^': operand.reduction = Reduction::kMaximum; break;
      case '#': operand.reduction = Reduction::kNone; break;
      case 'w': operand.dtype = OperandSignature::DTypeClass::kWide; break;
      case 'i': operand.dtype = OperandSignature::DTypeClass::kInt64; break;
      case 'd': operand.dtype = OperandSignature::DTypeClass::kFp64; break;
      default: line.Check(false, "a mark of an operand is one of + ! ^ # w i d");
    }
  }
}

// Operands with commas between them; none where the next word is the end of the list.
std::vector<OperandSignature> TakeOperands(LineReader& line) {
  std::vector<OperandSignature> operands;
  const auto ends = [&] { return line.Peek().empty() || line.Peek() == "->"; };
  if (ends()) return operands;
  do {
    OperandSignature& operand = operands.emplace_back();
    while (!ends()) {
      const string word = line.Take();
      if (line.TakeIf(':') || std::string_view("+!^#").find(word[0]) != std::string_view::npos) {
        AddMarks(word, line, operand);
      } else if (word == "*") {
        operand.leading = true;
      } else if (word[0] == '?') {
        operand.optional = true;
        operand.with = word.substr(1);
      } else if (word == "...") {
        operand.repeats = true;
      } else {
        operand.dims.push_back(ParseDim(word, line));
      }
    }
  } while (line.TakeIf(','));
  return operands;
}

// "i0", "o1", "do0", "di2", "di2.1", "1.i0"
GradientOperand ParseGradientOperand(string word, LineReader& line) {
  using Kind = GradientOperand::Kind;
  size_t link = 0;
  if (word.size() > 2 && IsDigit(word[0]) && word[1] == '.') {
    link = static_cast<size_t>(word[0] - '0');
    word.erase(0, 2);
  }
  const bool gradient = word[0] == 'd';
  const size_t side = gradient ? 1 : 0, dot = side + 2;
  const bool sized = word.size() == dot || (word.size() == dot + 2 && word[dot] == '.' && IsDigit(word[dot + 1]));
  line.Check(sized && (word[side] == 'i' || word[side] == 'o') && IsDigit(word[side + 1]),
             "an operand of a backward kind is such as i0, o1, do0, di2.1 or 1.i0");
  if (line.failed()) return {};
  const Kind kind = word[side] == 'i' ? (gradient ? Kind::kInputGradient : Kind::kInput)
                                      : (gradient ? Kind::kOutputGradient : Kind::kOutput);
  return {kind, static_cast<size_t>(word[side + 1] - '0'), link, word.size() == dot ? -1 : word[dot + 1] - '0'};
}

std::vector<GradientOperand> TakeGradientOperands(LineReader& line) {
  std::vector<GradientOperand> operands;
  while (!line.empty() && line.Peek() != "->") operands.push_back(ParseGradientOperand(line.Take(), line));
  return operands;
}

}  // namespace

// "INPUTS | PARAMETERS | GRADIENTS -> OUTPUTS"; lists that are missing before the arrow are empty.
OpSignature TakeSignature(LineReader& line) {
  OpSignature signature;
  signature.inputs = TakeOperands(line);
  if (line.TakeIf('|')) signature.parameters = TakeOperands(line);
  if (line.TakeIf('|')) signature.gradients = TakeOperands(line);
  line.Need("->");
  signature.outputs = TakeOperands(line);
  for (OperandSignature& output : signature.outputs) {
    if (output.of_rank && !output.dims.empty() && output.dims.front().index == 'T')
      output.reduction = Reduction::kScatterTokens;
  }
  return signature;
}

// "NAME [> NAME] > NAME: OPERANDS -> RESULTS"
GradientRule TakeGradientRule(LineReader& line) {
  GradientRule rule;
  rule.chain.push_back({line.TakeKind()});
  while (!line.failed() && !line.TakeIf(':')) {
    const bool optional = line.TakeIf('[');
    line.Need(">");
    rule.chain.push_back({line.TakeKind(), optional});
    if (optional) line.Need(']');
  }
  rule.operands = TakeGradientOperands(line);
  line.Need("->");
  rule.results = TakeGradientOperands(line);
  for (const auto* list : {&rule.operands, &rule.results}) {
    for (const GradientOperand& operand : *list)
      line.Check(operand.link < rule.chain.size(), "the chain has no such kind");
  }
  return rule;
}

bool GradientRule::starts_gradient() const {
  return std::none_of(operands.begin(), operands.end(), [](const GradientOperand& operand) {
    return operand.kind == GradientOperand::Kind::kOutputGradient;
  });
}

const OperandSignature* OperandAt(const std::vector<OperandSignature>& list, size_t i) {
  if (i < list.size()) return &list[i];
  return !list.empty() && list.back().repeats ? &list.back() : nullptr;
}

bool CountFits(const std::vector<OperandSignature>& list, size_t count, const Instruction& instruction) {
  size_t least = 0;  // operands that must be present
  for (const OperandSignature& operand : list) {
    const bool by_attribute = operand.optional && !operand.with.empty();
    const bool required = !operand.optional || (by_attribute && instruction.attributes.contains(operand.with));
    // Optional operands are last in their list, so a full list includes this one.
    if (by_attribute && !required && count == list.size()) return false;
    if (required) ++least;
  }
  return count >= least && (count <= list.size() || (!list.empty() && list.back().repeats));
}

}  // namespace planwright
