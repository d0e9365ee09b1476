// Run-time sizes: those of a module, and, once lowering has named them, bounds that follow from the data, the size that
// memory is planned for, and the mean (docs/memory.md).
#pragma once

#include <cstdint>
#include <vector>

#include "planner/compile/schedule/derive/block_inputs.h"
#include "planner/compile/schedule/programs/program_inputs.h"
#include "planner/plan/plan.h"

namespace planwright {

// With what no data and no router can exceed, as maxima. SizeSymbols tightens them.
std::vector<Symbol> SymbolsOf(const BlockInputs& inputs, const Module& module);

// Those of an encoder. `rows`: image tokens that a microbatch of the largest lane can have.
std::vector<Symbol> EncoderSymbols(const Module& module, int64_t rows);

// The symbols with tighter maxima of image sizes, by what a sample can bring (sample_images.h), and with
// Symbol::expected and Symbol::mean. The mean of expert rows is that of tokens spread evenly over the experts; memory
// is planned for Module::imbalance times that, and for the maximum if that is 0.
std::vector<Symbol> SizeSymbols(const ProgramInputs& inputs, std::vector<Symbol> symbols);

}  // namespace planwright
