#include "planner/verify/shared/bridge_rows.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planwright {

std::string RowsOfBridge(const Plan& plan, const Bridge& bridge, bool received) {
  if (!received) return bridge.from + ".image_rows";
  const auto into = std::count_if(plan.bridges.begin(), plan.bridges.end(),
                                  [&](const Bridge& other) { return other.to == bridge.to; });
  return into == 1 ? bridge.to + ".image_rows" : absl::StrCat(bridge.to, ".", bridge.from, ".image_rows");
}

}  // namespace planwright
