// The forms of pairs of compute instructions (joined_forms.h), for GPUs. As in fast_form.h, Takes... asks what is known
// before the first step, and Fast... takes any number of rows. What else is known at run time only it answers by
// calling OneByOne with the forms that the two have by themselves.
#pragma once

#include "executor/ops/joined_forms.h"

namespace planwright::executor::ops {

struct JoinedForm {
  bool (*takes)(const ComputeBinding& first, const ComputeBinding& second);
  JoinedHandler run;
};

// Null for other pairs, and in builds without CUDA (table.cc, no_table.cc).
const JoinedForm* FindJoinedForm(OpKind first, OpKind second);

// The first, then the second with what it made, each by its own form.
Tensors OneByOne(ComputeHandler first_form, const ComputeContext& first, ComputeHandler second_form,
                 const ComputeContext& second);

// The place of the first's output among the inputs of the second: that of the undefined tensor.
size_t PlaceOfFirst(const ComputeContext& second);

#define JOINED_FORM(first, second)                                                                  \
  bool Takes##first##With##second(const ComputeBinding& of_first, const ComputeBinding& of_second); \
  Tensors Fast##first##With##second(const ComputeContext& of_first, const ComputeContext& of_second);
#include "executor/ops/joined_forms.def"
#undef JOINED_FORM

}  // namespace planwright::executor::ops
