// The bridge: rows of samples between encoder and language ranks, all transfers of an instruction at once.
#pragma once

#include "executor/rank.h"
#include "executor/values.h"

namespace planwright::executor {

// Outputs of an exchange instruction: what each receiving part gets, its rank's lane in sample order, one row block per sample as long
// as `sample_rows` says. Transfers without rows send no message; a rank's transfer to itself is a copy.
Tensors RunExchange(const Instruction& instruction, const Values& values, Rank& rank);

}  // namespace planwright::executor
