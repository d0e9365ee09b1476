#include "planner/compile/schedule/derive/stated_order.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"

namespace planwright {
namespace {

using std::string;

// The number of the step's entry: that of its kind and value, or of its kind.
size_t EntryOf(const std::vector<string>& entries, const DerivedPiece& piece, const DerivedStep& step) {
  const string kind(OpName(step.kind)), named = absl::StrCat(kind, ".", piece.values[step.outputs.front()].stated);
  auto entry = std::find(entries.begin(), entries.end(), named);
  if (entry == entries.end()) entry = std::find(entries.begin(), entries.end(), kind);
  Require(entry != entries.end(), absl::StrCat("an order of a statement lacks ", named));
  return static_cast<size_t>(entry - entries.begin());
}

// A step that makes a value, with those that stay beside it.
struct Moved {
  size_t entry = 0;
  std::vector<DerivedStep> steps;
};

std::vector<Moved> Grouped(const std::vector<string>& entries, const DerivedPiece& piece,
                           std::vector<DerivedStep> steps) {
  std::vector<Moved> groups;
  std::vector<DerivedStep> before;  // additions to gradients, which stay before the next step
  for (DerivedStep& step : steps) {
    if (!step.outputs.empty()) {
      Moved& moved = groups.emplace_back(Moved{EntryOf(entries, piece, step), std::exchange(before, {})});
      moved.steps.push_back(std::move(step));
    } else if (step.gradients.empty() && !groups.empty()) {
      groups.back().steps.push_back(std::move(step));
    } else {
      before.push_back(std::move(step));
    }
  }
  Require(before.empty(), "nothing follows the last addition to a gradient");
  return groups;
}

}  // namespace

void PutInOrder(const std::vector<string>& entries, const DerivedPiece& piece, std::vector<DerivedStep>& steps) {
  std::set<size_t> to_come;
  for (const DerivedStep& step : steps) to_come.insert(step.outputs.begin(), step.outputs.end());
  std::vector<Moved> groups = Grouped(entries, piece, std::exchange(steps, {}));
  std::stable_sort(groups.begin(), groups.end(), [](const Moved& a, const Moved& b) { return a.entry < b.entry; });
  for (Moved& group : groups) std::move(group.steps.begin(), group.steps.end(), std::back_inserter(steps));
  for (const DerivedStep& step : steps) {
    for (size_t input : step.inputs) {
      Require(!to_come.contains(input),
              absl::StrCat("an order of a statement reads ", piece.values[input].name, " before it is made"));
    }
    for (size_t output : step.outputs) to_come.erase(output);
  }
}

}  // namespace planwright
