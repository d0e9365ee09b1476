// The tables of fast forms of a build without CUDA: they are empty.
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/joined_form.h"

namespace planwright::executor::ops {

const FastForm* FindFastForm(OpKind /*kind*/) { return nullptr; }
const JoinedForm* FindJoinedForm(OpKind /*first*/, OpKind /*second*/) { return nullptr; }

}  // namespace planwright::executor::ops
