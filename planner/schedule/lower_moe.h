// Forward and backward blocks of one mixture-of-experts layer, E (facts 3.6, 3.7, section 4).
#pragma once

#include "planner/schedule/lower_language.h"

namespace planwright {

Block LowerMoeForward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, int origin);
Block LowerMoeBackward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, const Block& forward,
                        int origin);

}  // namespace planwright
