#include "planner/run/measure/sizes_around.h"

#include <algorithm>
#include <cstdint>

namespace planwright {

std::vector<std::vector<std::string>> SizesAround(const Plan& plan) {
  const Budget& budget = plan.budget;
  std::vector<std::vector<std::string>> around;
  const auto length = [&](int64_t tokens) { around.push_back({"batch.sequence_length=" + std::to_string(tokens)}); };
  length(2 * budget.sequence_length);
  if (budget.sequence_length % 2 == 0) length(budget.sequence_length / 2);
  around.push_back({"batch.micro_samples=" + std::to_string(2 * budget.micro_samples)});
  // How fast work goes on beside a communication shows only where a plan has both at the same time, and what either
  // takes alone only where it does not.
  const bool overlaps =
      std::any_of(plan.groups.begin(), plan.groups.end(), [](const Group& group) { return group.streams.size() > 1; });
  if (plan.world_size > 1 && !overlaps) around.push_back({"gradients.overlap_reduce=true"});
  if (overlaps) {
    around.push_back({"gradients.overlap_reduce=false", "gradients.overlap_gather=false"});
    for (const Module& module : plan.modules) {
      if (module.experts() > 0) around.back().push_back("modules." + module.name + ".parallel.overlap_dispatch=false");
    }
  }
  return around;
}

}  // namespace planwright
