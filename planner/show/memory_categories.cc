#include "planner/show/memory_categories.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace planwright {

std::string MemoryUnit::Text(int64_t amount) const {
  return absl::StrFormat("%.2f %s", static_cast<double>(amount) / bytes, name);
}

MemoryUnit UnitOf(const std::vector<RoleEstimate>& estimates) {
  int64_t most = 0;
  for (const RoleEstimate& estimate : estimates) most = std::max({most, estimate.planned.total(), estimate.limit});
  return most >= 1'000'000'000 ? MemoryUnit{"GB", 1e9} : MemoryUnit{"MB", 1e6};
}

}  // namespace planwright
