// What `plan weights` prints: tables for people, and the same as JSON (docs/weights.md).
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/initial_pieces.h"
#include "planner/state/weights/read_values.h"

namespace planwright {

struct CheckedWeights {
  WeightsFit fit;
  std::vector<RankReads> reads;  // empty if the weights do not fit
  bool values_read = false;
  WeightValues values;

  bool fits() const { return fit.fits() && values.problems.empty(); }
};

std::string WeightsText(const CheckedWeights& weights, size_t width);
nlohmann::ordered_json WeightsJson(const CheckedWeights& weights);

}  // namespace planwright
