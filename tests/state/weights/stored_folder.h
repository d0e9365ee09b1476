// Folders of published weights in other forms than one tensor for each parameter: fused, in groups of rows, stacked,
// transposed, of another shape. They are written element by element (tests/state/forms/stored_by_hand.h), and the lines
// of a dialect say the same.
#pragma once

#include <string>

#include "planner/plan/plan.h"
#include "planner/state/dialect/dialect.h"
#include "planner/state/dialect/dialect_forms.h"
#include "tests/state/weights/published.h"

namespace planwright::testing {

// The alternatives of the dialect's two groups.
struct FusedChoice {
  bool renamed = false, stacked = false;
};

// The dialects of this program with lines of forms: names as they are or others (of the Omni model's language model),
// and experts one by one (but transposed) or stacked.
DialectSet FusedDialects();
inline KindForms FusedForms() { return FormsOf(FusedDialects()); }

// The dialects of this program with these lines in one of them, in place of its own lines of forms.
DialectSet DialectsWith(const std::string& dialect, const std::string& file, const std::string& lines);

// `whole`: all tensors of the plan, by Parameter::file_name (TensorsOf).
RawTensors Fused(RawTensors whole, const Plan& plan, FusedChoice choice);

}  // namespace planwright::testing
