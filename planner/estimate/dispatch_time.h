// How tokens reach the experts of other ep ranks: what each kind of dispatch is estimated to take, and which one `auto`
// is (docs/model/mixture_of_experts.md#choice-of-dispatch).
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// What one token costs in one layer with experts, in one direction (forward, or backward). `rows`: that its rank sends,
// as many rows of the token's size and type. `seconds`: messages and what kernels read and write beside them, from data
// sheets; 0 on a device of unknown speed.
struct DispatchTime {
  double rows = 0, seconds = 0;
};
DispatchTime TimeDispatch(const Module& module, const Cluster& cluster, DType dtype, const std::string& dispatch);

// Module::dispatch for a recipe that says `wanted`: the kind itself, or "auto", the one that takes less time.
// All_to_all where no token has to go to another rank, and for "auto" on a device of unknown speed.
std::string DispatchOf(const Module& module, const std::string& wanted, const Cluster& cluster, DType dtype);

}  // namespace planwright
