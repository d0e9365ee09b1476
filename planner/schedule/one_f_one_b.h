// The 1F1B pipeline schedule of one stage as data. Formula: facts 2.5.
#pragma once

#include <string>
#include <vector>

namespace planwright {

// "F0", "F1", "B0", ...: `warmup` forwards, then forward and backward in turn, then the backwards that are left.
// Microbatches from 0.
std::vector<std::string> OneForwardOneBackward(int warmup, int microbatches);

// How many forwards an order runs before its first backward.
int ForwardsBeforeBackward(const std::vector<std::string>& order);

}  // namespace planwright
