#include "executor/ops/forms.h"

#include "executor/ops/fast/fast_form.h"

namespace planwright::executor {

bool HasFastForm(OpKind kind) {
  switch (kind) {
#define FAST_FORM(id) case OpKind::k##id:
#include "executor/ops/fast_forms.def"
#undef FAST_FORM
    return true;
    default: return false;
  }
}

ComputeForm ChooseForm(const ComputeBinding& binding) {
  const OpKind kind = binding.instruction.kind;
  const ops::FastForm* fast = binding.device.is_cuda() ? ops::FindFastForm(kind) : nullptr;
  if (fast != nullptr && fast->takes(binding)) return {fast->run, ComputeForm::Choice::kFast};
  return {PlainFormOf(kind), HasFastForm(kind) ? ComputeForm::Choice::kPlain : ComputeForm::Choice::kOnly};
}

}  // namespace planwright::executor
