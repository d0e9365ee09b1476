#include "planner/run/measure/scale_profile.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "planner/predict/rates/measured_rates.h"

namespace planwright {
namespace {

enum UsesClass : size_t { kProducts, kAttention, kRest, kLaunches, kCommunications, kClasses };
constexpr std::array<std::string_view, kClasses> kClassNames = {"products", "attention", "the rest", "launches",
                                                                "communications"};

UsesClass ClassOf(const MeasuredCompute& point) {
  switch (point.kind) {
    case OpKind::kCausalAttention:
    case OpKind::kCausalAttentionGrad:
    case OpKind::kCausalAttentionAllKv:
    case OpKind::kCausalAttentionAllKvGrad:
    case OpKind::kPackedAttention:
    case OpKind::kPackedAttentionGrad:
    case OpKind::kMambaScan:
    case OpKind::kMambaScanGrad: return kAttention;
    default: return point.flops > 0 ? kProducts : kRest;
  }
}

struct Ratio {
  double factor = 1, weight = 1;  // the weight: what the base says for a step's uses
  bool measured = false;          // at this size, and not between two
};
using Ratios = std::array<std::vector<Ratio>, kClasses>;

// The factor below which a share of the weights lies.
double Quantile(const std::vector<Ratio>& sorted, double share) {
  double all = 0, below = 0;
  for (const Ratio& ratio : sorted) all += ratio.weight;
  for (const Ratio& ratio : sorted) {
    below += ratio.weight;
    if (below >= share * all) return ratio.factor;
  }
  return sorted.back().factor;
}

// The mean by weight, and not the median, as a step takes the sum of its uses: where a few large ones are slower here
// and many small ones are not, the median is of one of both, and the sum of neither.
ScaledUses FactorOf(std::string_view uses, std::vector<Ratio> ratios) {
  // What lies between two sizes is known less well.
  if (std::any_of(ratios.begin(), ratios.end(), [](const Ratio& ratio) { return ratio.measured; }))
    std::erase_if(ratios, [](const Ratio& ratio) { return !ratio.measured; });
  std::sort(ratios.begin(), ratios.end(), [](const Ratio& a, const Ratio& b) { return a.factor < b.factor; });
  double took = 0, known = 0;
  for (const Ratio& ratio : ratios) took += ratio.weight * ratio.factor, known += ratio.weight;
  return {std::string(uses), took / known, Quantile(ratios, 0.25), Quantile(ratios, 0.75),
          static_cast<int64_t>(ratios.size())};
}

Ratios RatiosOf(const DeviceProfile& base, const DeviceProfile& probe, const StepUses& steps) {
  int ranks = 1;  // of the probe, on its fullest node
  for (const MeasuredCompute& point : probe.compute) ranks = std::max(ranks, point.ranks);
  const MeasuredRates rates(base, ranks);
  Ratios ratios;
  const auto add = [&](UsesClass of, const std::optional<Seconds>& known, double seconds, double times) {
    if (!known || known->known == Known::kEstimated || known->seconds <= 0) return;
    ratios[of].push_back({seconds / known->seconds, times * known->seconds, known->known == Known::kMeasured});
  };
  for (const MeasuredCompute& point : probe.compute) {
    add(ClassOf(point), rates.Compute({point.kind, point.flops, point.bytes, point.dtype}), point.seconds.median,
        steps.Of(point));
  }
  for (const MeasuredLaunch& point : probe.launch)
    add(kLaunches, rates.HostLaunch(point.kind), point.seconds.median, steps.Of(point));
  for (const MeasuredCommunication& point : probe.communication) {
    add(kCommunications, rates.Communication({point.kind, point.bytes, point.members, point.per_node, point.nodes}),
        point.seconds.median, 1);
  }
  return ratios;
}

void Multiply(MeasuredTime& time, double factor) { time.median *= factor, time.low *= factor, time.high *= factor; }

}  // namespace

absl::Status CheckBase(const ProbedBase& base, const std::string& gpu) {
  const auto word = [](const std::string& of) { return of == "none" ? std::string("CPU ranks") : of; };
  if (base.profile.gpu != gpu) {
    return absl::InvalidArgumentError(absl::StrCat(
        base.path, " was measured on ", word(base.profile.gpu), ", and the recipe runs on ", word(gpu),
        ": a probe scales a profile to another device of the same kind; measure this one without --probe"));
  }
  if (!base.profile.scaled_from.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(base.path, " is scaled itself, from ", base.profile.scaled_from,
                                                   ": name the profile that was measured"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DeviceProfile> ScaledProfile(const ProbedBase& base, const DeviceProfile& probe, const StepUses& steps) {
  if (absl::Status status = CheckBase(base, probe.gpu); !status.ok()) return status;
  if (base.profile.device != probe.device) {
    return absl::InvalidArgumentError(absl::StrCat(
        base.path, " was measured on ", base.profile.device, ", and this device is ", probe.device,
        ": a probe scales a profile to another device of the same kind; measure this one without --probe"));
  }
  const Ratios ratios = RatiosOf(base.profile, probe, steps);
  std::array<bool, kClasses> needed{};
  for (const MeasuredCompute& point : base.profile.compute) needed[ClassOf(point)] = true;
  needed[kLaunches] = !base.profile.launch.empty();
  DeviceProfile scaled = base.profile;
  std::array<double, kClasses> factors;
  factors.fill(1);
  for (size_t of = 0; of < kClasses; ++of) {
    if (!ratios[of].empty()) {
      scaled.scaled_by.push_back(FactorOf(kClassNames[of], ratios[of]));
      factors[of] = scaled.scaled_by.back().factor;
    } else if (needed[of]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "nothing tells how ", std::string(kClassNames[of]), " of ", base.path,
          " scale: no use of the probe is of a size that was measured there, or lies between two that were, with as "
          "many CPU ranks; probe with a recipe that the profile was made of"));
    }
  }
  for (MeasuredCompute& point : scaled.compute) Multiply(point.seconds, factors[ClassOf(point)]);
  for (MeasuredLaunch& point : scaled.launch) Multiply(point.seconds, factors[kLaunches]);
  for (MeasuredCommunication& point : scaled.communication) Multiply(point.seconds, factors[kCommunications]);
  scaled.driver = probe.driver, scaled.libraries = probe.libraries, scaled.tool = probe.tool;
  scaled.hosts = probe.hosts, scaled.date = probe.date;
  scaled.scaled_from = absl::StrCat(base.path, " of ", base.profile.date);
  return scaled;
}

}  // namespace planwright
