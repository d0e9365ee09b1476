// The run-time sizes of a module, with what no data and no router can exceed (symbol_sizes.h tightens these maxima).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/compile/schedule/derive/block_inputs.h"
#include "planner/plan/plan.h"

namespace planwright {

std::vector<Symbol> SymbolsOf(const BlockInputs& inputs, const Module& module);

// Those of an encoder. `rows`: image tokens that a microbatch of the largest lane can have.
std::vector<Symbol> EncoderSymbols(const Module& module, int64_t rows);

}  // namespace planwright
