#include "executor/ops/joined_forms.h"

#include "executor/ops/fast/joined_form.h"
#include "planner/plan/link/joins.h"

namespace planwright::executor {

JoinedHandler ChooseJoinedForm(const ComputeBinding& first, const ComputeBinding& second) {
  if (!first.device.is_cuda() || JoinOf(first.instruction, second.instruction) == Join::kNone) return nullptr;
  const ops::JoinedForm* form = ops::FindJoinedForm(first.instruction.kind, second.instruction.kind);
  return form != nullptr && form->takes(first, second) ? form->run : nullptr;
}

namespace ops {

size_t PlaceOfFirst(const ComputeContext& second) {
  size_t place = 0;
  while (place < second.inputs.size() && second.inputs[place].defined()) ++place;
  TORCH_CHECK(place < second.inputs.size(), OpName(second.instruction.kind),
              " reads nothing of what is made before it");
  return place;
}

Tensors OneByOne(ComputeHandler first_form, const ComputeContext& first, ComputeHandler second_form,
                 const ComputeContext& second) {
  Tensors made = first_form(first), inputs = second.inputs;
  inputs[PlaceOfFirst(second)] = made.front();
  if (JoinOf(first.instruction, second.instruction) == Join::kPasses) made.erase(made.begin());
  for (at::Tensor& output : second_form({second.instruction, second.call, inputs, second.parameters, second.gradients}))
    made.push_back(std::move(output));
  return made;
}

}  // namespace ops

}  // namespace planwright::executor
