// How tokens reach the experts of other ep ranks: what each kind of dispatch is predicted to take, and which one `auto`
// is (docs/model/mixture_of_experts.md#choice-of-dispatch).
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/predict/rates/rates.h"

namespace planwright {

// A layer with experts in the forward, before there is a program: a microbatch of `tokens` tokens of each rank.
struct DispatchSizes {
  int64_t tokens = 1;
  DType dtype = DType::kBf16;
  int gpus_per_node = 8;
};
DispatchSizes DispatchSizesOf(const Module& module, const Budget& budget, const Cluster& cluster, DType dtype);

// What one token costs. `rows`: that its rank sends, as many rows of the token's size and type. `seconds`: messages and
// what kernels read and write beside them; 0 on a device of unknown speed.
struct DispatchTime {
  double rows = 0, seconds = 0;
};
DispatchTime TimeDispatch(const Module& module, const DispatchSizes& sizes, const Rates& rates,
                          const std::string& dispatch);

// Rates of the data sheet alone: those that decide. What a profile measured changes no run's numbers.
Rates DispatchRates(const Cluster& cluster);

// Module::dispatch for a recipe that says `wanted`: the kind itself, or "auto", the one that takes less time.
// All_to_all where no token has to go to another rank, and for "auto" on a device of unknown speed.
std::string DispatchOf(const Module& module, const std::string& wanted, const DispatchSizes& sizes, const Rates& rates);

}  // namespace planwright
