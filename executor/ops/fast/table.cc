// The table of fast forms of the CUDA build.
#include "executor/ops/fast/fast_form.h"

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

}  // namespace planwright::executor::ops
