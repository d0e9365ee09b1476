#include "planner/search/found_layouts.h"

#include <algorithm>
#include <tuple>

#include "planner/plan/plan_json.h"

namespace planwright {

const std::string& FoundLayouts::DigestOf(size_t index) {
  std::string& digest = digests_[index];
  if (digest.empty()) digest = PlanDigest(PlanOf(tuned_, layouts_[index].candidate).value());
  return digest;
}

void FoundLayouts::Add(FoundLayout found) {
  const size_t added = layouts_.size();
  const std::pair<double, int64_t> figures(found.step.seconds, found.step.memory);
  layouts_.push_back(std::move(found)), digests_.emplace_back();
  // Plans of other figures are others: a digest takes as long as the simulation.
  std::vector<size_t>& alike = by_figures_[figures];
  for (const size_t known : alike) {
    if (DigestOf(known) != DigestOf(added)) continue;
    const auto changes = [&](size_t index) { return ChangesOf(tuned_.recipe, layouts_[index].candidate).size(); };
    if (changes(added) < changes(known)) std::swap(layouts_[known], layouts_[added]);
    layouts_.pop_back(), digests_.pop_back();
    return;
  }
  alike.push_back(added);
  seconds_.insert(figures.first);
}

std::vector<FoundLayout> FoundLayouts::Sorted() const {
  std::vector<std::pair<size_t, const FoundLayout*>> order;
  for (const FoundLayout& found : layouts_) order.push_back({ChangesOf(tuned_.recipe, found.candidate).size(), &found});
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second->step.seconds, a.second->step.memory, a.first) <
           std::tie(b.second->step.seconds, b.second->step.memory, b.first);
  });
  std::vector<FoundLayout> sorted;
  for (const auto& [changes, found] : order) sorted.push_back(*found);
  return sorted;
}

}  // namespace planwright
