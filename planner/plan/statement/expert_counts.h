// Which layers count the tokens of each expert: those whose statement says `accumulate_counts`, as a router with a bias
// needs it, which is stepped by these counts. Other routers count nothing, and nothing is summed over ranks.
#pragma once

#include "planner/plan/plan.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// Whether layers of this kind count. False if there are no such layers.
bool CountsExperts(const ModelStatement& statement, char letter);

// Whether any layer that models of this kind may have counts.
bool CountsExperts(const ModelStatement& statement);

// Whether the stage of a module steps a bias of experts: it trains, and one of its layers counts.
bool StepsExpertBias(const Module& module, int stage);

}  // namespace planwright
