#include "planner/search/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "planner/predict/estimate/step_time.h"
#include "planner/predict/rates/device.h"

namespace planwright {
namespace {

constexpr double kMostSlower = 64;

struct Link {
  const char* what;
  bool between_nodes;
  double DeviceFigures::*figure;
  double Device::*speed;
};
constexpr Link kLinks[] = {{"link", false, &DeviceFigures::link, &Device::node_link},
                           {"network", true, &DeviceFigures::network, &Device::network}};

bool Measured(const Cluster& cluster, const Link& link) {
  const auto& points = cluster.profile.communication;
  return std::any_of(points.begin(), points.end(),
                     [&](const MeasuredCommunication& point) { return (point.nodes > 1) == link.between_nodes; });
}

}  // namespace

std::vector<TuneSensitivity> SensitivityOf(const TunedRecipe& tuned, const Candidate& fastest,
                                           const std::vector<Candidate>& others, const std::function<bool()>& stopped) {
  std::vector<TuneSensitivity> found;
  std::vector<Plan> plans;
  std::vector<const Candidate*> of;
  const auto add = [&](const Candidate& candidate) {
    std::optional<Plan> plan = PlanOf(tuned, candidate);
    if (plan) plans.push_back(*std::move(plan)), of.push_back(&candidate);
  };
  add(fastest);
  for (const Candidate& other : others) {
    if (stopped()) return found;
    if (other != fastest) add(other);
  }
  if (plans.empty() || of.front() != &fastest) return found;
  std::vector<double> now;
  for (const Plan& plan : plans) {
    if (stopped()) return found;
    now.push_back(StepLength(plan, RatesOf(tuned.cluster)));
  }
  for (const Link& link : kLinks) {
    const double speed = DeviceOf(tuned.cluster).*link.speed;
    const bool used = link.between_nodes ? plans[0].world_size > tuned.cluster.gpus_per_node : plans[0].world_size > 1;
    if (!used || speed <= 0 || Measured(tuned.cluster, link)) continue;
    TuneSensitivity sensitivity{.what = link.what};
    // The fastest other one if the link is so many times slower; -1: the fastest one is still faster.
    const auto faster = [&](double slower) {
      Cluster cluster = tuned.cluster;
      cluster.device.*link.figure = speed / 1e9 / slower;
      const Rates rates = RatesOf(cluster);
      // Of those that are slower now: one that is equal within the error of the times may be faster by itself.
      double best = StepLength(plans[0], rates);
      int at = -1;
      for (size_t i = 1; i < plans.size(); ++i) {
        if (now[i] < now[0] || stopped()) continue;
        const double length = StepLength(plans[i], rates);
        if (length < best) best = length, at = static_cast<int>(i);
      }
      return at;
    };
    double low = 1, high = 1;
    int at = -1;
    while (at < 0 && high < kMostSlower && !stopped()) low = high, high *= 2, at = faster(high);
    if (at >= 0) {
      while (high / low > 1.02 && !stopped()) {
        const double middle = std::sqrt(low * high);
        const int other = faster(middle);
        (other >= 0 ? high : low) = middle;
        if (other >= 0) at = other;
      }
      sensitivity.slower = high;
      sensitivity.instead = LineOf(tuned.recipe, *of[static_cast<size_t>(at)]);
    }
    if (stopped()) return found;
    found.push_back(std::move(sensitivity));
  }
  return found;
}

}  // namespace planwright
