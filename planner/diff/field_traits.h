// What plan_fields.h says of every field of a plan, by the field's pattern.
#pragma once

#include <map>
#include <string>

#include "planner/plan/plan_fields.h"

namespace planwright {

// "modules[].grid.tp": [] is any item of a list. Of instructions "instruction.op", wherever they stand.
const std::map<std::string, FieldTraits, std::less<>>& AllFieldTraits();

}  // namespace planwright
