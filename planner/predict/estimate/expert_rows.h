// How unevenly a recorded run spread the rows of its experts over ranks, for another layout of the same training
// (docs/step_time.md#rows-of-experts). Recordings: docs/model/mixture_of_experts.md#replay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"

namespace planwright {

// One layer with experts. Rows of ranks are multiples of the mean over the ranks.
struct LayerRows {
  std::string frame;  // "language.layers.3"
  // Of the rank of an ep group to which most rows come, in one microbatch: the mean over microbatches, groups and
  // steps.
  double fullest = 1;
  double fullest_node = 1;  // the same of the node whose ranks of an ep group get most rows, as their mean
  // The rows of the fullest expert of that rank, as multiples of the mean over its experts: the same mean.
  double fullest_expert = 1;
  std::vector<double> ranks;  // by ep coordinate: over all microbatches
};

struct ExpertRows {
  int64_t first_step = 1, last_step = 1;  // of the recording, that are counted
  std::vector<LayerRows> layers;          // of all modules with experts, in their order

  const LayerRows* Find(std::string_view frame) const;  // null: no such layer
};

// Counts the choices of the last steps of a recording for the ranks of this plan. Lanes have samples in their order,
// also where `data.balance` would deal them otherwise. Errors, with what is wrong: those of CheckReplayRouting.
absl::StatusOr<ExpertRows> ReadExpertRows(const Plan& plan, const std::string& folder);

}  // namespace planwright
