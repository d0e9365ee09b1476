// Compares two blocks that may call their values by other names.
#pragma once

#include <map>
#include <string>

#include "planner/plan/plan.h"

namespace planwright::testing {

// The names of the values of one block, by those of the other.
using ValueNames = std::map<std::string, std::string>;

// What the first block has that the second has not, with the first instruction that differs in both; "" if only names
// of values within the block differ. Compared are the inputs (of forwards with their names), what is taken, saved,
// freed, probed and handed out, and of each instruction its operands, slots, types, attributes, group and stream.
// `names`: those of the values that the blocks take; what the blocks define is added.
std::string BlockDifference(const Block& one, const Block& other, ValueNames& names);

}  // namespace planwright::testing
