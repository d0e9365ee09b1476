// Run-time sizes, once the programs that name them are written: bounds that follow from the data, what memory is
// planned for, and means.
#pragma once

#include "planner/plan/plan.h"

namespace planwright {

// Tightens the maxima of image sizes to what a sample can bring (sample_images.h), and sets Symbol::expected and
// Symbol::mean: expert rows at Module::imbalance times the mean, which is every token's top_k rows spread evenly.
void SizeSymbols(Plan& plan);

}  // namespace planwright
