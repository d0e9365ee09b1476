#include "planner/tune/found_layouts.h"

#include <algorithm>
#include <tuple>

namespace planwright {

std::vector<FoundLayout> FoundLayouts::Sorted(const Recipe& recipe) const {
  std::vector<std::pair<size_t, const FoundLayout*>> order;
  for (const FoundLayout& found : layouts_) order.push_back({ChangesOf(recipe, found.candidate).size(), &found});
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second->step.seconds, a.second->step.memory, a.first) <
           std::tie(b.second->step.seconds, b.second->step.memory, b.first);
  });
  std::vector<FoundLayout> sorted;
  for (const auto& [changes, found] : order) sorted.push_back(*found);
  return sorted;
}

}  // namespace planwright
