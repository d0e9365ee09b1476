// The forms of a compute instruction, and which of them it takes (docs/decisions/0029-forms-are-chosen-once.md). Every
// kind has a plain form, in LibTorch's operations, for all devices, types and sizes. Some have a fast one for GPUs too
// (fast_forms.def). Which one an instruction takes is settled before the first step, by its planned types, its
// attributes and the device: the same on every rank of a role, in every call.
#pragma once

#include <c10/core/Device.h>

#include <vector>

#include "executor/ops/handler.h"

namespace planwright::executor {

// What is known of a compute instruction before it runs.
struct ComputeBinding {
  const Instruction& instruction;
  const Module* module = nullptr;  // of its block; null: of none
  at::Device device;
  // The planned types of its inputs. A size that is known at run time only has a name (Dim).
  std::vector<const ValueType*> inputs;
  // Of one of the frames that its block is called with. Dtypes and shapes are those of every frame, addresses are not.
  const Tensors &parameters, &gradients;

  bool learns() const { return !gradients.empty(); }
};

struct ComputeForm {
  enum class Choice {
    kOnly,   // the kind has one form
    kPlain,  // the kind has a fast form, but not for this instruction
    kFast,
  };
  ComputeHandler run = nullptr;
  Choice choice = Choice::kOnly;
};

// The form that an instruction takes. Its `run` is null for kinds that are not of class compute.
ComputeForm ChooseForm(const ComputeBinding& binding);

// Whether fast_forms.def has the kind. True in builds without CUDA too, which take no fast form.
bool HasFastForm(OpKind kind);

}  // namespace planwright::executor
