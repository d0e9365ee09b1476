#include "planner/run/measure/skewed_routing.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/wire/records/routing_folder.h"
#include "planner/wire/records/routing_format.h"

namespace planwright {
namespace {

int64_t ExpertsOfARank(const Module& module) { return module.experts() / std::max(1, module.grid.ep); }

// The choices of `tokens` tokens. Each expert has a part of [0, k), as long as the share of tokens that shall choose
// it, at most 1. A token takes the experts at u, u + 1, ... u + k - 1, for a u in [0, 1) of its own: these are
// different ones, and each expert is hit as often as it shall be.
std::vector<RoutingId> Choices(const Module& module, int64_t tokens, double fullest) {
  const int64_t experts = module.experts(), of_rank = ExpertsOfARank(module), k = module.top_k();
  const double mean = static_cast<double>(k) / static_cast<double>(experts);
  const double other =
      of_rank > 1 ? mean * (static_cast<double>(of_rank) - fullest) / static_cast<double>(of_rank - 1) : mean;
  std::vector<double> ends;
  double end = 0;
  for (int64_t e = 0; e < experts; ++e) ends.push_back(end += e % of_rank == 0 && of_rank > 1 ? mean * fullest : other);
  std::vector<RoutingId> ids;
  ids.reserve(static_cast<size_t>(tokens * k));
  constexpr double kGolden = 0.6180339887498949;  // its multiples are spread evenly over [0, 1)
  for (int64_t t = 0; t < tokens; ++t) {
    double whole = 0;
    const double u = std::modf(static_cast<double>(t) * kGolden, &whole);
    for (int64_t j = 0; j < k; ++j) {
      const auto at = std::upper_bound(ends.begin(), ends.end(), u + static_cast<double>(j));
      auto id = std::min<int64_t>(at - ends.begin(), experts - 1);
      // Two points a little less than 1 apart, by rounding, could hit an expert whose part is 1.
      if (j > 0 && id <= ids.back()) id = std::min<int64_t>(ids.back() + 1, experts - 1);
      ids.push_back(static_cast<RoutingId>(id));
    }
  }
  return ids;
}

}  // namespace

double MostSkew(const Plan& plan) {
  double most = 0;
  for (const Module& module : plan.modules) {
    if (module.expert_layers() == 0) continue;
    const double of_module = std::min(static_cast<double>(ExpertsOfARank(module)),
                                      static_cast<double>(module.experts()) / static_cast<double>(module.top_k()));
    most = most == 0 ? of_module : std::min(most, of_module);
  }
  return most;
}

absl::Status WriteSkewedRouting(const Plan& plan, int64_t steps, double fullest, const std::string& folder) {
  if (absl::Status status = MakeDirectories(folder); !status.ok()) return status;
  const int64_t tokens = steps * plan.budget.global_samples * plan.budget.sequence_length;
  for (const Module& module : plan.modules) {
    if (module.expert_layers() == 0) continue;
    const std::vector<RoutingId> ids = Choices(module, tokens, fullest);
    const std::string_view bytes(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(RoutingId));
    for (const LayerSummary& layer : module.layers) {
      if (layer.expert_row < 0) continue;
      const absl::Status written = WriteFileAtomically(RoutingPath(folder, layer.frame), bytes);
      if (!written.ok()) return written;
    }
  }
  return FinishRoutingFolder(plan, steps, folder);
}

}  // namespace planwright
