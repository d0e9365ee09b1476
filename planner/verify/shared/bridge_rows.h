// The run-time size of the rows that a bridge brings.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// As the encoder counts them ("radio_encoder.image_rows"), or, `received`, as the module that they go to
// ("language.image_rows"; with several bridges "language.radio_encoder.image_rows"). Either end makes room for as many
// as its own lanes can have.
std::string RowsOfBridge(const Plan& plan, const Bridge& bridge, bool received);

}  // namespace planwright
