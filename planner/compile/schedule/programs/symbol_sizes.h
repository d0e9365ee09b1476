// Run-time sizes, once lowering has named them: bounds that follow from the data, the size that memory is planned for,
// and the mean (docs/memory.md).
#pragma once

#include <vector>

#include "planner/compile/schedule/programs/program_inputs.h"
#include "planner/plan/plan.h"

namespace planwright {

// The symbols with tighter maxima of image sizes, by what a sample can bring (sample_images.h), and with
// Symbol::expected and Symbol::mean. The mean of expert rows is that of tokens spread evenly over the experts; memory
// is planned for Module::imbalance times that, and for the maximum if that is 0.
std::vector<Symbol> SizeSymbols(const ProgramInputs& inputs, std::vector<Symbol> symbols);

}  // namespace planwright
