// The fast forms of compute instructions (forms.h): kernels of executor/kernels or of a library, for GPUs.
//
// Takes<Kind> asks what is known before the first step: types, widths, attributes, the device. It is called for GPUs
// only. Fast<Kind> takes any number of rows. What else is known at run time only, it answers itself by calling the
// plain form, Run<Kind>: no rows at all, operands that do not lie as kernels read them (contiguous, from a multiple of
// 16 bytes on), the replay of a route.
#pragma once

#include "executor/ops/forms.h"

namespace planwright::executor::ops {

struct FastForm {
  bool (*takes)(const ComputeBinding&);
  ComputeHandler run;
};

// Null for kinds without a fast form, and in builds without CUDA (table.cc, no_table.cc).
const FastForm* FindFastForm(OpKind kind);

#define FAST_FORM(id)                            \
  bool Takes##id(const ComputeBinding& binding); \
  Tensors Fast##id(const ComputeContext& context);
#include "executor/ops/fast_forms.def"
#undef FAST_FORM

}  // namespace planwright::executor::ops
