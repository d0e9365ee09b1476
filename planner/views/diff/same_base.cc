#include "planner/views/diff/same_base.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "planner/state/weights/base_digest.h"
#include "planner/state/weights/fit.h"
#include "planner/state/weights/parts.h"

namespace planwright {
namespace {

// The fields of a plan that say where weights come from.
constexpr std::string_view kOfSources[] = {"initialize.from", "initialize.base", "initialize.sources"};

// The sources of all parts that checkpoints have, by part. None: they do not fit the plan.
std::optional<std::map<std::string, std::string>> SourcesOfTheRest(const Plan& plan) {
  const absl::StatusOr<std::vector<PartSource>> sources = SourcesOfParts(plan);
  if (!sources.ok()) return std::nullopt;
  std::map<std::string, std::string> paths;
  for (const PartSource& source : *sources) {
    if (CheckpointsHave(source.part)) paths[source.part.name] = source.path;
  }
  return paths;
}

}  // namespace

absl::StatusOr<std::map<std::string, std::string>> BaseToGoOn(const Plan& plan) {
  Plan standing = plan;  // a rank reads the same (InitialState)
  standing.initialize = NeededToGoOn(plan);
  const WeightsFit fit = FitWeights(standing);
  if (!fit.fits()) return fit.status();
  return BaseDigests(standing, fit);
}

void AcceptSameBase(const Plan& wrote, const Plan& plan, const std::map<std::string, std::string>& kept,
                    const std::map<std::string, std::string>& found, PlanDiff& diff) {
  if (kept.empty() || kept != found || !wrote.initialize || !plan.initialize) return;
  const auto before = SourcesOfTheRest(wrote), now = SourcesOfTheRest(plan);
  if (!before || !now || *before != *now) return;
  for (PlanChange& change : diff.changes) {
    const bool of_sources = std::any_of(std::begin(kOfSources), std::end(kOfSources),
                                        [&](std::string_view field) { return change.path.starts_with(field); });
    if (!of_sources || !change.may_change_loss) continue;
    change.may_change_loss = false;
    change.effect = "the weights that adapters stand on are the same, by their digest";
  }
}

}  // namespace planwright
