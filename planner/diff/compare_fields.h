// Two trees of fields (field_tree.h) to changes, by the rules of field_rules.h.
#pragma once

#include <vector>

#include "planner/diff/diff.h"

namespace planwright {

// `rates_change`: whether the learning rate or the weight decay is another at some step.
std::vector<Change> CompareFields(const nlohmann::ordered_json& from, const nlohmann::ordered_json& to,
                                  bool rates_change);

}  // namespace planwright
