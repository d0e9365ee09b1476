#include "planner/compile/schedule/derive/bridge_value.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planwright {

// One bridge needs no prefix, and its plans keep the plain names.
std::string BridgeValue(const std::vector<Bridge>& bridges, const Bridge& bridge, const char* what) {
  const auto same_end = [&](const Bridge& other) { return other.to == bridge.to; };
  return std::count_if(bridges.begin(), bridges.end(), same_end) == 1 ? what : absl::StrCat(bridge.from, ".", what);
}

}  // namespace planwright
