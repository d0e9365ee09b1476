// What one rank has: its place in the plan, its device, communicators, weights and sums.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "executor/base/tensors.h"
#include "executor/communication/communicators.h"
#include "executor/ops/handler.h"
#include "executor/optimizer/module_state.h"
#include "executor/optimizer/step_state.h"
#include "planner/plan/plan.h"
#include "planner/state/checkpoint/format.h"

namespace planwright::executor {

// N of the frame "MODULE.layers.N"; -1 for other frames.
int LayerOf(std::string_view frame);

struct Rank {
  const Plan& plan;
  const Role& role;
  int rank = 0;
  std::string host;
  at::Device device;
  Communicators communicators;
  StepState step;
  ManifestNotes notes;  // of the checkpoint that was loaded, then of the next one
  std::map<std::string, ModuleState> modules;

  // The tensor of a state operand: a bucket's buffer "%MODULE.gradients.3", or an accumulator "$reals.loss". c10::Error
  // if there is none.
  at::Tensor StateValue(const std::string& name);
  // The context of a call of a block of `module` (null: of no module) in `frame`.
  CallContext Context(const Module* module, std::string_view frame, int microbatch) const;
};

}  // namespace planwright::executor
