// Reads every byte of a checkpoint, as `plan checkpoint verify` does.
#pragma once

#include <string>

#include "planner/cli/checkpoint_text.h"

namespace planwright {

// Shows how far it is (ProgressBar). Takes as long as reading the files takes.
CheckedCheckpoint CheckCheckpoint(const std::string& folder);

}  // namespace planwright
