// Forward and backward blocks of one Mamba-2 mixer layer, M (facts 3.5).
#pragma once

#include "planner/schedule/lower_language.h"

namespace planwright {

Block LowerMambaForward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, int origin);
Block LowerMambaBackward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, const Block& forward,
                        int origin);

}  // namespace planwright
