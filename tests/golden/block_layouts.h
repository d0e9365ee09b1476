// Layouts that bring out the blocks of one kind of layer in every form that tp, cp, expert parallelism, token dispatch,
// overlap, packed documents and frozen parts give them. They are compiled, not trained.
#pragma once

#include <vector>

#include "tests/numerics/layouts.h"

namespace planwright::testing {

std::vector<Layout> BlockLayouts();

}  // namespace planwright::testing
