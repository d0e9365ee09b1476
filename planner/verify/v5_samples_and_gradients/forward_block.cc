#include "planner/verify/v5_samples_and_gradients/forward_block.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "planner/verify/shared/typed_instruction.h"
#include "planner/verify/v5_samples_and_gradients/backward_table.h"

namespace planwright {

using std::string;

Terms Joined(Terms a, const Terms& b) {
  a.insert(a.end(), b.begin(), b.end());
  std::sort(a.begin(), a.end());
  return a;
}

ForwardBlock::ForwardBlock(const PlanIndex& index, const Block& block, bool alone)
    : index_(index), block_(block), alone_(alone) {
  for (size_t i = 0; i < block.body.size(); ++i) {
    const Instruction& op = block.body[i];
    for (size_t input = 0; input < op.inputs.size(); ++input)
      uses_[op.inputs[input]].push_back({static_cast<int>(i), static_cast<int>(input)});
    for (const Output& output : op.outputs) {
      types_[output.name] = &output.type;
      makers_[output.name] = static_cast<int>(i);
    }
    if (op.kind == OpKind::kAllReduce && op.inputs.size() == 1 && op.outputs.size() == 1)
      reduced_from_[op.outputs[0].name] = op.inputs[0];
  }
  for (const Output& input : block.inputs) types_[input.name] = &input.type;
  for (size_t j = 0; j < block.outputs.size(); ++j) outputs_[block.outputs[j]].push_back(static_cast<int>(j));
}

const ValueType* ForwardBlock::type(const string& name) const {
  auto it = types_.find(name);
  return it == types_.end() ? nullptr : it->second;
}

const Terms& ForwardBlock::GradientOf(const string& name) {
  if (auto it = gradients_.find(name); it != gradients_.end()) return it->second;
  gradients_[name] = {};  // ends the recursion where a damaged plan has a value that depends on itself (V4)
  Terms terms;
  for (const auto& [i, input] : uses_[name]) {
    const Instruction& op = at(i);
    if (InfoOf(op.kind).PassesGradient(static_cast<size_t>(input)) && !op.outputs.empty()) {
      for (const Output& output : op.outputs) terms = Joined(std::move(terms), GradientOf(output.name));
    } else if (op.kind == OpKind::kCall ? TakesGradient(op, static_cast<size_t>(input))
                                        : HasInputGradient(op.kind, static_cast<size_t>(input))) {
      terms.push_back({i, input});
    }
  }
  for (int j : outputs_[name]) {
    const ValueType* made = type(name);
    if (made && (made->gradient || alone_)) terms.push_back({-1, j});
  }
  std::sort(terms.begin(), terms.end());
  return gradients_[name] = std::move(terms);
}

bool ForwardBlock::Learns(const string& name) {
  if (auto it = learns_.find(name); it != learns_.end()) return it->second;
  learns_[name] = false;  // ends the recursion, as above
  const auto maker = makers_.find(name);
  if (maker == makers_.end()) {
    const ValueType* given = type(name);
    return learns_[name] = given && given->gradient;
  }
  const Instruction& op = at(maker->second);
  bool learns = op.kind == OpKind::kCall || !op.parameters.empty();
  for (size_t i = 0; !learns && i < op.inputs.size(); ++i) {
    const bool gives = InfoOf(op.kind).PassesGradient(i) || HasInputGradient(op.kind, i);
    learns = gives && Learns(op.inputs[i]);
  }
  return learns_[name] = learns;
}

void ForwardBlock::WalkFromOutputs() {
  std::vector<bool> met(block_.body.size());
  for (size_t j = 0; j < block_.outputs.size(); ++j) {
    std::vector<Term> open = {{-1, static_cast<int>(j)}};  // uses that are to be met, the next one last
    while (!open.empty()) {
      const Term use = open.back();
      open.pop_back();
      orders_.emplace(use, static_cast<int>(orders_.size()));
      const auto maker =
          makers_.find(use.first < 0 ? block_.outputs[j] : at(use.first).inputs[static_cast<size_t>(use.second)]);
      if (maker == makers_.end() || met[static_cast<size_t>(maker->second)]) continue;
      met[static_cast<size_t>(maker->second)] = true;
      for (size_t input = at(maker->second).inputs.size(); input-- > 0;)
        open.emplace_back(maker->second, static_cast<int>(input));
    }
  }
}

int ForwardBlock::OrderInSums(const Terms& terms) {
  if (orders_.empty()) WalkFromOutputs();
  int first = std::numeric_limits<int>::max();
  for (const Term& term : terms) {
    if (const auto order = orders_.find(term); order != orders_.end()) first = std::min(first, order->second);
  }
  return first;
}

DType ForwardBlock::GradientDType(const string& name, const ValueType& type) const {
  const auto uses = uses_.find(name);
  if (uses == uses_.end()) return type.dtype;
  for (const auto& [i, input] : uses->second) {
    const Instruction& op = at(i);
    if (op.kind == OpKind::kScatterTokens && !op.outputs.empty()) return op.outputs.front().type.dtype;
  }
  return type.dtype;
}

bool ForwardBlock::TakesGradient(const Instruction& call, size_t input) const {
  const Block* called = index_.block(call.block);
  return called && input < called->inputs.size() && called->inputs[input].type.gradient.has_value();
}

bool ForwardBlock::Repeats(const Instruction& op) const {
  const auto same = [](const Output& a, const Output& b) { return a.name == b.name && SameType(a.type, b.type); };
  return std::any_of(block_.body.begin(), block_.body.end(), [&](const Instruction& made) {
    return made.kind == op.kind && made.inputs == op.inputs && made.parameters == op.parameters &&
           made.attributes == op.attributes && made.group == op.group &&
           std::equal(made.outputs.begin(), made.outputs.end(), op.outputs.begin(), op.outputs.end(), same);
  });
}

const string& ForwardBlock::Unreduced(const string& name) const {
  auto it = reduced_from_.find(name);
  return it == reduced_from_.end() ? name : it->second;
}

const Output* ForwardBlock::TakenAsOtherType(const Block& other) const {
  for (const Output& take : other.takes) {
    const ValueType* saved = type(take.name);
    if (saved && !SameType(take.type, *saved)) return &take;
  }
  return nullptr;
}

string ForwardBlock::Text(const Term& term) const {
  if (term.first < 0) return absl::StrCat("output ", block_.outputs[static_cast<size_t>(term.second)]);
  const Instruction& op = at(term.first);
  if (op.kind == OpKind::kCall) return absl::StrCat(op.block, " of ", op.frame);
  return absl::StrCat(string(OpName(op.kind)), " of ", op.inputs[static_cast<size_t>(term.second)]);
}

}  // namespace planwright
