#include "planner/search/equal_layouts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <utility>

namespace planwright {
namespace {

// Of those that need less memory by more than `worth` the fastest, and so on.
size_t FirstByMemory(std::span<const FoundLayout* const> equals, int64_t worth) {
  const auto figures = [&](size_t i) { return std::tie(equals[i]->step.seconds, equals[i]->step.memory); };
  size_t first = 0;
  for (size_t i = 1; i < equals.size(); ++i) {
    if (figures(i) < figures(first)) first = i;
  }
  for (;;) {
    const int64_t most = equals[first]->step.memory - worth;
    size_t smaller = equals.size();
    for (size_t i = 0; i < equals.size(); ++i) {
      if (equals[i]->step.memory < most && (smaller == equals.size() || figures(i) < figures(smaller))) smaller = i;
    }
    if (smaller == equals.size()) return first;
    first = smaller;
  }
}

// The simplest of those near the fastest; of equally simple ones the fastest. `whole`: by time.
size_t SimplestOf(const std::vector<FoundLayout>& whole) {
  size_t simplest = 0;
  Simplicity least = SimplicityOf(whole.front().candidate);
  const double most = whole.front().step.seconds * (1 + kSimplestWithin);
  for (size_t i = 1; i < whole.size() && whole[i].step.seconds <= most; ++i) {
    const Simplicity simplicity = SimplicityOf(whole[i].candidate);
    if (simplicity < least) least = simplicity, simplest = i;
  }
  return simplest;
}

}  // namespace

bool SameGrids(const Candidate& a, const Candidate& b) { return GridsOf(a) == GridsOf(b); }

Candidate RowOf(Candidate candidate) {
  for (ModuleChoice& module : candidate.modules) module.stage_layers.clear(), module.overlap_dispatch = false;
  candidate.step = {.micro_samples = candidate.step.micro_samples};
  return candidate;
}

bool ChoiceRule::Equal(const FoundLayout& fastest, const FoundLayout& layout) const {
  const bool same = SameGrids(fastest.candidate, layout.candidate);
  return layout.step.seconds <= fastest.step.seconds * (1 + (same ? errors.same_grids : errors.other_grids));
}

size_t FirstOfEqual(const std::vector<FoundLayout>& equals, const ChoiceRule& rule) {
  std::vector<size_t> at;
  Simplicity least;
  for (size_t i = 0; i < equals.size(); ++i) {
    if (rule.prefer == Preference::kSimple) {
      const Simplicity simplicity = SimplicityOf(equals[i].candidate);
      if (!at.empty() && simplicity > least) continue;
      if (at.empty() || simplicity < least) at.clear(), least = simplicity;
    }
    at.push_back(i);
  }
  std::vector<const FoundLayout*> simplest;
  for (const size_t i : at) simplest.push_back(&equals[i]);
  return at[FirstByMemory(simplest, rule.worth)];
}

std::vector<LayoutRow> RowsOf(const std::vector<FoundLayout>& whole, const ChoiceRule& rule, size_t rows) {
  const Candidate& fastest = whole.front().candidate;
  const FoundLayout& simplest = whole[SimplestOf(whole)];
  std::map<Candidate, int64_t> members;
  for (const FoundLayout& layout : whole) ++members[RowOf(layout.candidate)];
  std::vector<FoundLayout> equals, others;
  for (const FoundLayout& layout : whole) (rule.Equal(whole.front(), layout) ? equals : others).push_back(layout);
  std::vector<LayoutRow> all;
  std::map<Candidate, size_t> known;  // rows in `all`
  const auto add = [&](const FoundLayout& layout, bool equal) {
    const Candidate row = RowOf(layout.candidate);
    const bool is_simplest = layout.candidate == simplest.candidate, is_new = !known.contains(row);
    if (!is_new && (!is_simplest || SimplicityOf(all[known[row]].layout.candidate) <= SimplicityOf(simplest.candidate)))
      return;
    if (is_new) known[row] = all.size();
    all.push_back({layout, is_new ? members[row] - 1 : 0, equal, is_simplest});
  };
  while (!equals.empty()) {
    const auto at = static_cast<std::ptrdiff_t>(FirstOfEqual(equals, rule));
    add(equals[static_cast<size_t>(at)], true);
    equals.erase(equals.begin() + at);
  }
  for (const FoundLayout& layout : others) add(layout, false);
  // A row that is as simple stands for the simplest.
  if (std::none_of(all.begin(), all.end(), [](const LayoutRow& row) { return row.simplest; }))
    all[known[RowOf(simplest.candidate)]].simplest = true;
  for (LayoutRow& row : all) {
    const bool apart = row.simplest && row.alike == 0 && members[RowOf(row.layout.candidate)] > 1;
    if (apart) --all[known[RowOf(row.layout.candidate)]].alike;
  }
  // Rows that must be shown keep their places; others leave room for them.
  const auto must = [&](size_t i) {
    return i == 0 || all[i].simplest || RowOf(all[i].layout.candidate) == RowOf(fastest);
  };
  size_t left = 0;
  for (size_t i = 0; i < all.size(); ++i) left += must(i) ? 1 : 0;
  std::vector<LayoutRow> shown;
  for (size_t i = 0; i < all.size() && shown.size() < rows; ++i) {
    if (must(i)) --left;
    if (must(i) || shown.size() + left < rows) shown.push_back(all[i]);
  }
  return shown;
}

}  // namespace planwright
