// How tokens should reach the experts of other ep ranks: what each kind of dispatch is estimated to take
// (docs/model/mixture_of_experts.md#choice-of-dispatch). It is asked before there is a program.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// Of one token in one direction (forward, or backward), in seconds; on a device of unknown speed in rows that are sent.
// Both grow with the tokens and their width alike, so only their order matters.
struct DispatchTimes {
  double all_to_all = 0, all_gather = 0;
};
DispatchTimes TimeDispatch(const Module& module, const Cluster& cluster, int64_t element_bytes);

// Module::dispatch for a recipe that says `wanted`: "auto", or the kind itself. Empty where no token has to go to
// another rank.
std::string DispatchOf(const Module& module, const Cluster& cluster, int64_t element_bytes, const std::string& wanted);

}  // namespace planwright
