// Forward and backward blocks of one causal grouped-query attention layer, * (facts 3.4).
#pragma once

#include "planner/schedule/lower_language.h"

namespace planwright {

Block LowerAttentionForward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, int origin);
Block LowerAttentionBackward(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, const Block& forward,
                        int origin);

}  // namespace planwright
