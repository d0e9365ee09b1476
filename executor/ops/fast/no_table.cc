// The table of fast forms of a build without CUDA: it is empty.
#include "executor/ops/fast/fast_form.h"

namespace planwright::executor::ops {

const FastForm* FindFastForm(OpKind /*kind*/) { return nullptr; }

}  // namespace planwright::executor::ops
