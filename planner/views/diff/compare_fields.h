// Two plans, field by field. A plan becomes a tree of its fields, and two trees become changes by the rules of
// field_rules.h.
#pragma once

#include <vector>

#include "planner/views/diff/diff.h"

namespace planwright {

// All fields that the plan's digest covers, by the keys of the plan's file. Fields with their default value are there
// too, unlike in the file, so that both trees have the same fields.
nlohmann::ordered_json FieldTree(const Plan& plan);

// Changes from one FieldTree to another, in the order of the fields. `rates_change`: whether the learning rate or the
// weight decay is another at some step; it decides whether fields of the schedules may change the loss.
std::vector<PlanChange> CompareFields(const nlohmann::ordered_json& from, const nlohmann::ordered_json& to,
                                      bool rates_change);

}  // namespace planwright
