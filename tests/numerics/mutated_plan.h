// Plans whose blocks are derived from a statement with a mistake.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright::testing {

// The plan with blocks and programs of another statement for models of its kind. `plan`: of a recipe with the default
// settings of overlap, that loads weights and writes no checkpoints.
Plan WithStatement(const Plan& plan, const ModelStatement& statement);

// The same by name, "hybrid_lm:17" for mutant 17 of the statement. InvalidArgument if there is none, or if the plan is
// of another recipe.
absl::StatusOr<Plan> WithMutant(const Plan& plan, const std::string& name);
std::string MutantName(const std::string& kind, size_t number);

}  // namespace planwright::testing
