// Runs two operations of which the second reads what the first makes, as the executor does: at once, if it has a form
// for that (executor/ops/joined_forms.h), or one after the other.
#pragma once

#include <algorithm>
#include <utility>

#include "executor/ops/fast/joined_form.h"
#include "executor/ops/joined_forms.h"
#include "tests/executor/ops/bound_form.h"

namespace planwright::executor {

// How many operands of a joined operation are those of the first; the others are those of the second, without the
// first output of the first, which belongs among its inputs at `place`.
struct OfFirst {
  size_t inputs = 0, parameters = 0, gradients = 0, place = 0;
};

// A handler for Op::Run (run_op.h). Attributes are those of both. On a GPU the pair must have a joined form for these
// operands if `joined`, and must not have one otherwise.
template <OpKind kFirst, OpKind kSecond, OfFirst kOf, bool joined = true>
Tensors RunJoined(const ComputeContext& context) {
  const auto part = [](const Tensors& all, size_t of_first, bool first) {
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>(std::min(of_first, all.size()));
    return first ? Tensors(all.begin(), middle) : Tensors(middle, all.end());
  };
  Instruction one = context.instruction, other = context.instruction;
  one.kind = kFirst, other.kind = kSecond;
  const Tensors inputs = part(context.inputs, kOf.inputs, true),
                parameters = part(context.parameters, kOf.parameters, true),
                gradients = part(context.gradients, kOf.gradients, true);
  Tensors other_inputs = part(context.inputs, kOf.inputs, false);
  const Tensors other_parameters = part(context.parameters, kOf.parameters, false),
                other_gradients = part(context.gradients, kOf.gradients, false);
  const ComputeContext first = {one, context.call, inputs, parameters, gradients, context.overwrites};
  const at::Device device = inputs.front().device();

  // What lies between them has the type of an input of the second: all pairs are so.
  other_inputs.insert(other_inputs.begin() + static_cast<std::ptrdiff_t>(kOf.place), at::Tensor());
  other.inputs.assign(other_inputs.size(), "value");  // how many there are is asked, not their names
  std::vector<ValueType> types;
  for (const at::Tensor& input : inputs) types.push_back(PlannedTypeOf(input));
  ValueType between = types.front();
  if (kFirst == OpKind::kLinear) between.dims.back() = parameters.front().size(0);
  if (kFirst == OpKind::kLinearInputGrad) between.dims.back() = parameters.front().size(1);
  for (const at::Tensor& input : other_inputs) types.push_back(input.defined() ? PlannedTypeOf(input) : between);
  ComputeBinding bound_first{one, context.call.module, device, {}, parameters, gradients},
      bound_second{other, context.call.module, device, {}, other_parameters, other_gradients};
  for (size_t i = 0; i < types.size(); ++i)
    (i < inputs.size() ? bound_first : bound_second).inputs.push_back(&types[i]);

  const ComputeContext second = {other, context.call, other_inputs, other_parameters, other_gradients};
  const JoinedHandler form = ChooseJoinedForm(bound_first, bound_second);
  TORCH_CHECK((form != nullptr) == (joined && device.is_cuda()), OpName(kFirst), " and ", OpName(kSecond),
              form != nullptr ? " have" : " have no", " joined form");
  if (form != nullptr) return form(first, second);
  return ops::OneByOne(ChooseForm(bound_first).run, first, ChooseForm(bound_second).run, second);
}

}  // namespace planwright::executor
