// Runs the cases of op_cases.cc: operands are wired as the entries of ops.def say.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/plan/expression.h"
#include "planner/plan/table_text.h"
#include "tests/executor/ops/op_cases.h"
#include "tests/executor/ops/run_op.h"

namespace planwright::executor::op_cases {
namespace {

using std::string;

std::vector<string> Words(const string& text) { return absl::StrSplit(text, ' ', absl::SkipEmpty()); }

// The size of a name; another case of its first letter will do, so that a mutant may mark a dim.
int64_t SizeOf(const OpCase& c, const string& name) {
  string other = name;
  other[0] = static_cast<char>(absl::ascii_islower(static_cast<unsigned char>(name[0]))
                                   ? absl::ascii_toupper(static_cast<unsigned char>(name[0]))
                                   : absl::ascii_tolower(static_cast<unsigned char>(name[0])));
  for (const string& wanted : {name, other}) {
    for (const string& size : std::vector<string>(absl::StrSplit(c.sizes, ','))) {
      const std::vector<string> words = Words(size);
      if (words.size() == 2 && words[0] == wanted) return std::stoll(words[1]);
    }
  }
  return -1;
}

std::vector<int64_t> ShapeOf(const OpCase& c, const OperandSignature& operand, size_t index) {
  std::vector<int64_t> shape;
  if (operand.leading) shape = c.leading;
  for (const SignatureDim& dim : operand.dims) {
    if (dim.number >= 0) {
      shape.push_back(dim.number);
    } else if (!dim.factors.empty()) {
      int64_t product = 1;
      for (const string& factor : dim.factors) product *= SizeOf(c, factor);
      shape.push_back(product);
    } else if (!c.parts_of_f.empty()) {
      const auto all = std::accumulate(c.parts_of_f.begin(), c.parts_of_f.end(), int64_t{0});
      shape.push_back(operand.repeats ? c.parts_of_f[index] : all);
    } else {
      shape.push_back(SizeOf(c, dim.name));
    }
  }
  return shape;
}

at::Tensor MakeOperand(const OpCase& c, const OperandSignature& operand, const string& name, size_t index) {
  const std::vector<int64_t> shape = ShapeOf(c, operand, index);
  const auto values = c.values.find(name);
  if (values != c.values.end()) return values->second(shape);
  if (operand.dtype == OperandSignature::DTypeClass::kInt64)
    throw CaseError(absl::StrCat(c.name, ": no values for the integers ", name));
  if (std::find(shape.begin(), shape.end(), -1) != shape.end())
    throw CaseError(absl::StrCat(c.name, ": a size of ", name, " is missing"));
  return Normal()(shape);
}

std::vector<string> NamesUpTo(const string& prefix, size_t count) {
  std::vector<string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(absl::StrCat(prefix, i));
  return names;
}

// Which stage of the case each instruction of a chain is; -1: the case lacks it. None: the case has other stages.
std::optional<std::vector<int>> StagesOf(const GradientRule& rule, const OpCase& c) {
  std::vector<int> stages;
  size_t next = 0;
  for (const GradientRule::Link& link : rule.chain) {
    const bool has = next < c.stages.size() && OpName(link.kind) == c.stages[next].kind;
    if (!has && !link.optional) return std::nullopt;
    stages.push_back(has ? static_cast<int>(next++) : -1);
  }
  if (next != c.stages.size()) return std::nullopt;
  return stages;
}

// "0.di1.2"
string NameOfOperand(const GradientOperand& operand, int stage) {
  using enum GradientOperand::Kind;
  const bool gradient = operand.kind == kInputGradient || operand.kind == kOutputGradient;
  const bool input = operand.kind == kInput || operand.kind == kInputGradient;
  return absl::StrCat(stage < 0 ? "-" : absl::StrCat(stage), gradient ? ".d" : ".", input ? "i" : "o", operand.index,
                      operand.part < 0 ? "" : absl::StrCat(".", operand.part));
}

RankCoordinates CoordinatesOfCase(const OpCase& c) {
  return {.cp = c.cp, .cp_rank = c.cp_rank, .ep = c.ep, .ep_rank = c.ep_rank};
}

// Of a kind that splits, its outputs are what the case says.
Tensors SplitOutputs(const OpCase& c) {
  Tensors outputs;
  for (int64_t size : c.parts_of_f) {
    std::vector<int64_t> shape = c.leading;
    shape.push_back(size);
    outputs.push_back(at::empty(shape, at::kDouble));
  }
  return outputs;
}

// What a text says. Mutants are many, and each asks for all texts.
template <typename Read>
const Read& ReadOnce(const string& text, Read (*take)(LineReader&)) {
  static std::unordered_map<string, Read> known;
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  LineReader line(text);
  Read read = take(line);
  line.NeedEnd();
  if (line.failed()) throw CaseError(line.problem()->message + ": " + text);
  return known.emplace(text, std::move(read)).first->second;
}

Wiring Wire(const Table& table, const OpCase& c, const Entry& entry, size_t line, const GradientNames& names) {
  Wiring wiring = {.entry = &entry, .line = line, .operands = names.operands, .results = names.results};
  const OpSignature& own = entry.signature(c.cp > 1);
  const OpSignature& forward = table[c.stages[0].kind].signature(c.cp > 1);
  // An optional operand is present where the forward has it, or by its attribute.
  while (!wiring.operands.empty() && wiring.operands.size() <= own.inputs.size()) {
    const OperandSignature& last = own.inputs[wiring.operands.size() - 1];
    const string& name = wiring.operands.back();
    const bool absent = last.optional && (last.with.empty() ? name[2] == 'i' && !c.values.contains(name)
                                                            : !c.attributes.contains(last.with));
    if (!absent) break;
    wiring.operands.pop_back();
  }
  for (const string& name : wiring.operands) {
    if (name[0] == '-') throw CaseError(c.name + ": " + entry.name + " reads what this case does not make");
  }
  // Its slots are the first ones of its forward.
  const size_t slots = CountOf(c, forward.parameters, "0.p");
  wiring.parameters = NamesUpTo("0.p", std::min(slots, own.parameters.size()));
  wiring.gradients = NamesUpTo("0.dp", std::min(slots, own.gradients.size()));
  return wiring;
}

}  // namespace

const GradientRule& Entry::Transpose::rule() const { return ReadOnce<GradientRule>(text, TakeGradientRule); }

const OpSignature& Entry::signature(bool over_cp) const {
  return ReadOnce<OpSignature>(over_cp && !operands_cp.empty() ? operands_cp : operands, TakeSignature);
}

const Entry& Table::operator[](const string& name) const {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry;
  }
  throw CaseError("no compute kind " + name);
}
Entry& Table::operator[](const string& name) { return const_cast<Entry&>(std::as_const(*this)[name]); }

Table OpsTable() {
  Table table{{}, CutLines()};
  for (const OpInfo& info : AllOps()) {
    if (info.op_class != OpClass::kCompute) continue;
    Entry& entry = table.entries.emplace_back();
    entry.name = string(info.name), entry.kind = info.kind;
    entry.operands = info.operands, entry.operands_cp = info.operands_cp;
    entry.parts = info.parts;
    for (size_t i = 0; i < info.transposes.size(); ++i)
      entry.transposes.push_back({info.transposes_texts[i], info.transposes[i].over_cp});
  }
  return table;
}

int64_t Number(const Expression& formula, const Attributes& attributes) {
  const double value = formula.Evaluate([&](const string& name) {
    const auto found = attributes.find(name);
    const auto* number = found == attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
    return number ? static_cast<double>(*number) : std::numeric_limits<double>::quiet_NaN();
  });
  if (std::isnan(value)) throw CaseError("no value of " + formula.text());
  return std::llround(value);
}

int64_t Number(const string& formula, const Attributes& attributes) {
  return Number(Expression::Parse(formula).value(), attributes);
}

std::vector<int64_t> Numbers(const string& formulas, const Attributes& attributes) {
  std::vector<int64_t> numbers;
  for (const string& formula : std::vector<string>(absl::StrSplit(formulas, ',')))
    numbers.push_back(Number(string(absl::StripAsciiWhitespace(formula)), attributes));
  return numbers;
}

size_t CountOf(const OpCase& c, const std::vector<OperandSignature>& list, const string& prefix) {
  size_t count = 0;
  for (const OperandSignature& operand : list) {
    if (operand.repeats) return count + c.parts_of_f.size();
    if (operand.optional && !c.values.contains(absl::StrCat(prefix, count))) break;
    ++count;
  }
  return count;
}

Tensors RunKind(const Entry& entry, const Attributes& attributes, const RankCoordinates& rank, const Tensors& inputs,
                const Tensors& parameters, const Tensors& gradients, const Tensors& outputs) {
  std::vector<Output> types;
  for (const at::Tensor& output : outputs) {
    Output& type = types.emplace_back();
    for (int64_t size : output.sizes()) type.type.dims.emplace_back(size);
  }
  return Op(attributes)
      .OnTpRank(rank.tp_rank, rank.tp)
      .OnCpRank(rank.cp_rank, rank.cp)
      .OnEpRank(rank.ep_rank, rank.ep)
      .WithOutputs(types)
      .Run(PlainFormOf(entry.kind), inputs, parameters, gradients);
}

Named FreshOperands(const Table& table, const OpCase& c) {
  at::manual_seed(11);
  Named fresh;
  for (size_t k = 0; k < c.stages.size(); ++k) {
    const OpSignature& signature = table[c.stages[k].kind].signature(c.cp > 1);
    const string stage = absl::StrCat(k, ".");
    for (size_t i = 0; i < CountOf(c, signature.inputs, stage + "i"); ++i) {
      if (c.stages[k].links.contains(i)) continue;
      const string name = absl::StrCat(stage, "i", i);
      fresh[name] = MakeOperand(c, *OperandAt(signature.inputs, i), name, i);
    }
    for (size_t i = 0; i < CountOf(c, signature.parameters, stage + "p"); ++i) {
      const string name = absl::StrCat(stage, "p", i);
      fresh[name] = MakeOperand(c, signature.parameters[i], name, i);
    }
  }
  return fresh;
}

Named RunForward(const Table& table, const OpCase& c, const Named& fresh) {
  Named values = fresh;
  for (size_t k = 0; k < c.stages.size(); ++k) {
    const Entry& entry = table[c.stages[k].kind];
    const OpSignature& signature = entry.signature(c.cp > 1);
    const string stage = absl::StrCat(k, ".");
    for (const auto& [input, output] : c.stages[k].links) values[absl::StrCat(stage, "i", input)] = values.at(output);
    const Tensors outputs =
        RunKind(entry, c.attributes, CoordinatesOfCase(c),
                Of(values, NamesUpTo(stage + "i", CountOf(c, signature.inputs, stage + "i"))),
                Of(values, NamesUpTo(stage + "p", CountOf(c, signature.parameters, stage + "p"))), {}, SplitOutputs(c));
    for (size_t i = 0; i < outputs.size(); ++i) values[absl::StrCat(stage, "o", i)] = outputs[i];
  }
  return values;
}

std::optional<GradientNames> NamesIn(const OpCase& c, const Entry::Transpose& line) {
  const GradientRule& rule = line.rule();
  const std::optional<std::vector<int>> stages = StagesOf(rule, c);
  if (!stages) return std::nullopt;
  GradientNames names;
  for (const GradientOperand& operand : rule.operands)
    names.operands.push_back(NameOfOperand(operand, (*stages)[operand.link]));
  for (const GradientOperand& result : rule.results)
    names.results.push_back(NameOfOperand(result, (*stages)[result.link]));
  return names;
}

std::vector<Wiring> BackwardOf(const Table& table, const OpCase& c) {
  std::vector<Wiring> all;
  for (const Entry& entry : table.entries) {
    std::optional<Wiring> found;
    for (size_t line = 0; line < entry.transposes.size(); ++line) {
      if (entry.transposes[line].over_cp && c.cp == 1) continue;
      // A line for cp comes behind the plain one.
      if (const auto names = NamesIn(c, entry.transposes[line])) found = Wire(table, c, entry, line, *names);
    }
    if (found) all.push_back(*found);
  }
  return all;
}

void AddCotangents(const OpCase& c, const std::vector<Wiring>& backward, Named& values) {
  for (const auto& [name, number] : c.cotangents) {
    string output = name;
    output.erase(output.find('d'), 1);
    values[name] = at::zeros_like(values.at(output)).fill_(number);
  }
  for (const Wiring& wiring : backward) {
    for (const string& name : wiring.operands) {
      if (name[2] != 'd' || values.contains(name)) continue;
      string output = name;
      output.erase(output.find('d'), 1);
      values[name] = at::randn(values.at(output).sizes(), at::kDouble);
    }
  }
}

Gradients RunBackward(const OpCase& c, const Wiring& wiring, const Named& values) {
  Tensors buffers;
  for (string name : wiring.gradients) {
    name.erase(name.find('d'), 1);
    buffers.push_back(values.at(name).clone().fill_(0.5));  // not zero: handlers must add
  }
  Gradients gradients;
  gradients.results = RunKind(*wiring.entry, c.attributes, CoordinatesOfCase(c), Of(values, wiring.operands),
                              Of(values, wiring.parameters), buffers);
  for (const at::Tensor& buffer : buffers) gradients.added.push_back(buffer - 0.5);
  return gradients;
}

Tensors Of(const Named& values, const std::vector<string>& names) {
  Tensors tensors;
  for (const string& name : names) {
    const auto found = values.find(name);
    if (found == values.end()) throw CaseError("no value " + name);
    tensors.push_back(found->second);
  }
  return tensors;
}

}  // namespace planwright::executor::op_cases
