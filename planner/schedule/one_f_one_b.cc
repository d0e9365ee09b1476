#include "planner/schedule/one_f_one_b.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"

namespace planwright {

std::vector<std::string> OneForwardOneBackward(int warmup, int microbatches) {
  Require(warmup >= 0 && warmup <= microbatches, "more warmup forwards than microbatches");
  std::vector<std::string> order;
  for (int i = 0; i < warmup; ++i) order.push_back(absl::StrCat("F", i));
  for (int i = warmup; i < microbatches; ++i) {
    order.push_back(absl::StrCat("F", i));
    order.push_back(absl::StrCat("B", i - warmup));
  }
  for (int i = microbatches - warmup; i < microbatches; ++i) order.push_back(absl::StrCat("B", i));
  return order;
}

int ForwardsBeforeBackward(const std::vector<std::string>& order) {
  const auto backward = [](const std::string& action) { return action[0] == 'B'; };
  return static_cast<int>(std::find_if(order.begin(), order.end(), backward) - order.begin());
}

}  // namespace planwright
