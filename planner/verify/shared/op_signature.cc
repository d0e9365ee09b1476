#include "planner/verify/shared/op_signature.h"

#include <cctype>
#include <optional>

#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using std::string;

// The text is part of this program: a mistake in it is a bug of ours, which Require and Bug report.
SignatureDim ParseDim(const string& word) {
  SignatureDim dim;
  dim.index = word[0];
  if (word == "_") return dim;  // whole, of any size
  if (std::isdigit(static_cast<unsigned char>(word[0]))) {
    dim.number = std::stoll(word);
    dim.index = '_';
    return dim;
  }
  if (word[0] == '(') {
    Require(word.size() > 2 && word.back() == ')', "product in a signature: " + word);
    dim.index = word[1];
    for (char factor : word.substr(1, word.size() - 2)) dim.factors.emplace_back(1, factor);
    return dim;
  }
  if (word.back() != '~') dim.name = word;  // "f~": the index alone, with no size to compare
  return dim;
}

OperandSignature ParseOperand(const string& text) {
  OperandSignature operand;
  for (const string& word : std::vector<string>(absl::StrSplit(text, ' ', absl::SkipEmpty()))) {
    if (word == "*") {
      operand.leading = true;
    } else if (word[0] == '?') {
      operand.optional = true;
      operand.with = word.substr(1);
    } else if (word == "...") {
      operand.repeats = true;
    } else if (word[0] == '+' || word[0] == '!' || word.back() == ':') {
      for (char mark : word) {  // marks before the dims: "+w:", "!i:", "+!"
        switch (mark) {
          case '+': operand.linear = true; break;
          case '!': operand.of_rank = true; break;
          case 'w': operand.dtype = OperandSignature::DTypeClass::kWide; break;
          case 'i': operand.dtype = OperandSignature::DTypeClass::kInt64; break;
          case 'd': operand.dtype = OperandSignature::DTypeClass::kFp64; break;
          case ':': break;
          default: Bug("mark in a signature: " + word);
        }
      }
    } else {
      operand.dims.push_back(ParseDim(word));
    }
  }
  return operand;
}

std::vector<OperandSignature> ParseList(std::string_view text) {
  std::vector<OperandSignature> operands;
  for (const string& operand :
       std::vector<string>(absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipWhitespace()))) {
    operands.push_back(ParseOperand(operand));
  }
  return operands;
}

// `over_cp`: where the attribute cp is above 1, if the kind has other operands there.
struct Signatures {
  std::optional<OpSignature> plain, over_cp;
};

const Signatures& SignaturesOf(OpKind kind) {
  static const std::vector<Signatures> all = [] {
    std::vector<Signatures> made;
    for (const OpInfo& info : AllOps()) {
      Signatures& signatures = made.emplace_back();
      if (!info.operands.empty()) signatures.plain = ParseSignature(info.operands);
      if (!info.operands_cp.empty()) signatures.over_cp = ParseSignature(info.operands_cp);
    }
    return made;
  }();
  return all[static_cast<size_t>(kind)];
}

}  // namespace

// "inputs | parameters | gradients -> outputs"; sections that are missing at the end are empty.
OpSignature ParseSignature(std::string_view text) {
  const size_t arrow = text.find("->");
  Require(arrow != std::string_view::npos, "signature without ->: " + string(text));
  OpSignature signature;
  signature.outputs = ParseList(text.substr(arrow + 2));
  std::vector<OperandSignature>* const sections[] = {&signature.inputs, &signature.parameters, &signature.gradients};
  std::string_view rest = text.substr(0, arrow);
  for (auto* section : sections) {
    const size_t bar = std::min(rest.find('|'), rest.size());
    *section = ParseList(rest.substr(0, bar));
    rest = bar == rest.size() ? std::string_view() : rest.substr(bar + 1);
  }
  return signature;
}

const OpSignature* SignatureOf(const Instruction& instruction) {
  const Signatures& signatures = SignaturesOf(instruction.kind);
  const auto& found = instruction.over_cp() && signatures.over_cp ? signatures.over_cp : signatures.plain;
  return found ? &*found : nullptr;
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
