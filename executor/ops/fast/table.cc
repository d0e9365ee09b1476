// The tables of fast forms of the CUDA build.
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/joined_form.h"

namespace planwright::executor::ops {

const FastForm* FindFastForm(OpKind kind) {
  switch (kind) {
#define FAST_FORM(id)                                          \
  case OpKind::k##id: {                                        \
    static constexpr FastForm kForm = {&Takes##id, &Fast##id}; \
    return &kForm;                                             \
  }
#include "executor/ops/fast_forms.def"
#undef FAST_FORM
    default: return nullptr;
  }
}

const JoinedForm* FindJoinedForm(OpKind first, OpKind second) {
#define JOINED_FORM(one, other)                                                              \
  if (first == OpKind::k##one && second == OpKind::k##other) {                               \
    static constexpr JoinedForm kForm = {&Takes##one##With##other, &Fast##one##With##other}; \
    return &kForm;                                                                           \
  }
#include "executor/ops/joined_forms.def"
#undef JOINED_FORM
  return nullptr;
}

}  // namespace planwright::executor::ops
