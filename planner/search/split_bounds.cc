#include "planner/search/split_bounds.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace planwright {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

void Add(const PartCost& more, PartCost& sum) {
  sum.forward += more.forward, sum.backward += more.backward, sum.work += more.work, sum.reduce += more.reduce;
  sum.states += more.states, sum.kept += more.kept;
}

PartCost Between(const PartCost& first, const PartCost& end) {
  return {end.forward - first.forward, end.backward - first.backward, end.work - first.work,
          end.reduce - first.reduce,   end.states - first.states,     end.kept - first.kept};
}

}  // namespace

SplitBounds::SplitBounds(LayerCosts costs, double most)
    : costs_(std::move(costs)), most_(most - costs_.rest), stages_(static_cast<size_t>(costs_.stages)),
      layers_(costs_.layers.size()), before_(1), drains_(stages_ + 1, std::vector<double>(layers_ + 1, kNone)),
      least_(drains_) {
  for (const PartCost& layer : costs_.layers) {
    before_.push_back(before_.back());
    Add(layer, before_.back());
  }
  // All stages that may have the layers from `first` on, fewest layers first: with more a stage takes longer.
  const auto each = [&](size_t stage, size_t first, const auto& visit) {
    for (size_t end = first + LeastLayers(stage); end <= layers_; ++end) {
      const PartCost cost = StageOf(stage, first, end);
      const double seconds = StepOf(stage, first, end, cost, drains_[stage][first]);
      if (seconds > most_ || !Fits(stage, cost)) break;
      if (!visit(end, cost, seconds)) break;
    }
  };
  drains_[0][0] = costs_.drain;
  for (size_t stage = 0; stage < stages_; ++stage) {
    for (size_t first = 0; first <= layers_; ++first) {
      const double drain = drains_[stage][first];
      if (drain == kNone) continue;
      each(stage, first, [&](size_t end, const PartCost& cost, double) {
        double& after = drains_[stage + 1][end];
        after = std::min(after, std::max(drain + cost.backward, EndOf(stage, cost)));
        return true;
      });
    }
  }
  least_[stages_][layers_] = 0;
  for (size_t stage = stages_; stage-- > 0;) {
    for (size_t first = 0; first <= layers_; ++first) {
      if (drains_[stage][first] == kNone) continue;
      double& least = least_[stage][first];
      each(stage, first, [&](size_t end, const PartCost&, double seconds) {
        least = std::min(least, std::max(seconds, least_[stage + 1][end]));
        return seconds < least;
      });
    }
  }
}

double SplitBounds::least() const { return least_[0][0] + costs_.rest; }

double SplitBounds::most() const {
  PartCost all = before_.back();
  Add(costs_.embed, all), Add(costs_.head, all);
  const auto times = static_cast<double>(costs_.microbatches + 2);
  return (all.forward + all.backward) * times + all.reduce + costs_.fill + costs_.drain +
         2 * (times + static_cast<double>(costs_.stages)) * costs_.hop + costs_.rest;
}

PartCost SplitBounds::StageOf(size_t stage, size_t first, size_t end) const {
  PartCost cost = Between(before_[first], before_[end]);
  if (stage == 0) Add(costs_.embed, cost);
  if (stage + 1 == stages_) Add(costs_.head, cost);
  if (stage > 0) cost.forward += costs_.hop;
  if (stage + 1 < stages_) cost.backward += costs_.hop;
  return cost;
}

bool SplitBounds::Fits(size_t stage, const PartCost& cost) const {
  if (costs_.limit == 0) return true;
  const int64_t flying = std::min(static_cast<int64_t>(stages_ - stage), costs_.microbatches);
  return costs_.each + cost.states + flying * std::max<int64_t>(0, cost.kept - costs_.handed) <= costs_.limit;
}

double SplitBounds::EndOf(size_t stage, const PartCost& cost) const {
  if (!(costs_.beside < 1)) return cost.backward;
  const double hop = stage + 1 < stages_ ? costs_.hop : 0;
  return std::max(cost.backward, hop + (cost.work + cost.reduce) / (1 + costs_.beside));
}

double SplitBounds::StepOf(size_t stage, size_t first, size_t end, const PartCost& cost, double drain) const {
  const auto seconds = [](const PartCost& part) { return part.forward + part.backward; };
  const auto microbatches = static_cast<double>(costs_.microbatches);
  const size_t behind = stages_ - stage - 1;
  double fill = costs_.fill;
  if (stage > 0) fill += costs_.embed.forward + before_[first].forward + static_cast<double>(stage - 1) * costs_.hop;
  double own = microbatches * seconds(cost);
  if (costs_.fills && behind > 0 && static_cast<int64_t>(behind) < costs_.microbatches) {
    const double sent_back = seconds(before_[layers_]) - seconds(before_[end]) + seconds(costs_.head) +
                             static_cast<double>(2 * behind - 1) * costs_.hop;
    own = std::max(
        own, sent_back + microbatches * cost.backward + (microbatches - static_cast<double>(behind)) * cost.forward);
  }
  return fill + own + std::max(drain, EndOf(stage, cost) - cost.backward);
}

struct SplitBounds::Visitor {
  double from = 0, to = 0;
  size_t left = 0;
  const std::function<void(const std::vector<int64_t>&, double)>* visit = nullptr;
  std::vector<int64_t> layers;
};

bool SplitBounds::Visit(double from, double to, size_t many,
                        const std::function<void(const std::vector<int64_t>&, double)>& visit) const {
  Visitor visitor{from - costs_.rest, to - costs_.rest, many, &visit, {}};
  return VisitFrom(0, 0, costs_.drain, 0, visitor);
}

bool SplitBounds::VisitFrom(size_t stage, size_t first, double drain, double seconds, Visitor& visitor) const {
  if (stage == stages_) {
    if (seconds < visitor.from) return true;
    if (visitor.left == 0) return false;
    --visitor.left;
    (*visitor.visit)(visitor.layers, seconds + costs_.rest);
    return true;
  }
  for (size_t end = first + LeastLayers(stage); end <= layers_; ++end) {
    const PartCost cost = StageOf(stage, first, end);
    const double with = std::max(seconds, StepOf(stage, first, end, cost, drain));
    if (!(with < visitor.to) || with > most_ || !Fits(stage, cost)) break;
    if (!(least_[stage + 1][end] < visitor.to)) continue;
    visitor.layers.push_back(static_cast<int64_t>(end - first));
    const bool all = VisitFrom(stage + 1, end, std::max(drain + cost.backward, EndOf(stage, cost)), with, visitor);
    visitor.layers.pop_back();
    if (!all) return false;
  }
  return true;
}

}  // namespace planwright
