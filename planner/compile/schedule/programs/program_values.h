// Names of values in a program. Inside a block names are local; a program names values of all microbatches, and with
// colocated modules those of several modules.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// "language.m0.tokens"
std::string ValueOf(const Module& module, int microbatch, const std::string& what);

// 3 of "F3", an action of a stage's schedule.
int MicrobatchOf(const std::string& action);

// An input of a block. A name that is none is a bug.
const Output& InputNamed(const Block& block, const std::string& name);

// One side of a transfer over a bridge. `sample_rows`: the value with the rows of each sample, which size its messages.
ExchangePart OverBridge(const Bridge& bridge, bool backward, bool send, std::string value, std::string sample_rows);

}  // namespace planwright
