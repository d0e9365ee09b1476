// The keys of recipes that dialects give: those of constants, and choices.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

const StatedKey* FindDialectKey(const ModelStatement& statement, std::string_view name);  // null: there is none
std::vector<std::string> KeysOfDialects(const ModelStatement& statement);
std::vector<std::string> SectionsOf(const ModelStatement& statement);

// The constant that a key gives; null: none.
const StatedConstant* ConstantOfKey(const ModelStatement& statement, const StatedKey& key);

}  // namespace planwright
