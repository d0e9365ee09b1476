// Names of what bridges bring to the language model.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// "rows", "drows" or "sample_rows". With several bridges the name of the encoder is put in front: "images.rows".
std::string BridgeValue(const std::vector<Bridge>& bridges, const Bridge& bridge, const char* what);

}  // namespace planwright
