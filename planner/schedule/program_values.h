// Names and types of a program's values.
#pragma once

#include <string>

#include "planner/plan/plan.h"

namespace planwright {

// "language.m0.tokens"
std::string ValueOf(const Module& module, int microbatch, const std::string& what);

// 3 of "F3", an action of a stage's schedule.
int MicrobatchOf(const std::string& action);

// The block's input, and the type of any value that it takes or makes, by the name it has inside; a name that is not
// there is a bug.
const Output& InputNamed(const Block& block, const std::string& name);
const ValueType& TypeMade(const Block& block, const std::string& name);

// Names of what a bridge brings to its language module: with one bridge "rows", "drows" and "sample_rows", with several
// the encoder's name in front.
std::string BridgeValue(const Plan& plan, const Bridge& bridge, const char* what);

// One side of a bridge's transfer; `sample_rows` names the rows of each sample, which size its messages.
ExchangePart OverBridge(const Bridge& bridge, bool backward, bool send, std::string value, std::string sample_rows);

}  // namespace planwright
