#include "planner/search/simplicity.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace planwright {

Simplicity SimplicityOf(const ModuleChoice& layout) {
  Simplicity simplicity;
  for (const int64_t axis : {layout.tp, layout.cp, layout.pp, layout.ep, layout.expert_tp})
    simplicity.axes += axis > 1 ? 1 : 0;
  const std::vector<int64_t>& stages = layout.stage_layers;
  simplicity.uneven = std::any_of(stages.begin(), stages.end(), [&](int64_t layers) { return layers != stages[0]; });
  simplicity.recomputed =
      std::count_if(layout.recompute.begin(), layout.recompute.end(), [](const auto& word) { return word != "none"; });
  return simplicity;
}

Simplicity SimplicityOf(const Candidate& candidate) {
  Simplicity all;
  for (const ModuleChoice& module : candidate.modules) {
    const Simplicity one = SimplicityOf(module);
    all.axes += one.axes, all.uneven += one.uneven, all.recomputed += one.recomputed;
  }
  if (candidate.modules.size() > 1 && !Together(candidate)) ++all.axes;
  return all;
}

std::string SimplicityText(const Candidate& candidate) {
  const Simplicity simplicity = SimplicityOf(candidate);
  const bool apart = candidate.modules.size() > 1 && !Together(candidate);
  const int64_t axes = simplicity.axes - (apart ? 1 : 0);
  return absl::StrCat(axes == 0   ? "no axis but dp"
                      : axes == 1 ? "1 axis beside dp"
                                  : absl::StrCat(axes, " axes beside dp"),
                      apart ? ", modules apart" : "", simplicity.uneven > 0 ? ", uneven stages" : ", even stages",
                      simplicity.recomputed > 0 ? ", recompute" : ", no recompute");
}

}  // namespace planwright
