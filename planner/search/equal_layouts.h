// Which layouts are as fast as the fastest as far as anybody knows, and which of these comes first
// (docs/decisions/0051-the-error-of-a-difference.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/search/found_layouts.h"
#include "planner/search/simplicity.h"
#include "planner/search/tune.h"

namespace planwright {

// Whether all modules have the same ranks and axes.
bool SameGrids(const Candidate& a, const Candidate& b);

// Candidates with the same one are a row of the table: they differ by the layers of stages, buckets and overlap alone.
Candidate RowOf(Candidate candidate);

// What decides among layouts.
struct ChoiceRule {
  DifferenceErrors errors;
  Preference prefer = Preference::kSimple;
  int64_t worth = 0;  // bytes that a layout must save to come before a faster one, where memory decides

  // Whether `layout` may be as fast as `fastest`.
  bool Equal(const FoundLayout& fastest, const FoundLayout& layout) const;
};

// The index of the one among `equals`, which are not empty, that comes first: the simplest; of equally simple ones the
// fastest, unless others need less memory by more than `worth`, then the fastest of these, unless others need less than
// that one by more than `worth`, and so on. Where memory is preferred, this holds for all of them.
size_t FirstOfEqual(const std::vector<FoundLayout>& equals, const ChoiceRule& rule);

// A row of the table.
struct LayoutRow {
  FoundLayout layout;
  int64_t alike = 0;      // others in `whole` that it stands for
  bool equal = false;     // to the fastest
  bool simplest = false;  // the simplest that takes at most kSimplestWithin longer than the fastest
};

// At most `rows` rows of `whole`, which is by time and not empty: those that are equal to the fastest in the order of
// FirstOfEqual, then the others by time. The fastest layout's row and the simplest layout are among them, if there is
// room; where its row has a less simple layout, the simplest has a row of its own.
std::vector<LayoutRow> RowsOf(const std::vector<FoundLayout>& whole, const ChoiceRule& rule, size_t rows);

}  // namespace planwright
