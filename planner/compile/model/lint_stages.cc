#include "planner/compile/model/lint_stages.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "planner/compile/model/stage_split.h"

namespace planwright {
namespace {

constexpr double kUnevenRatio = 1.5;

// The forward FLOPs of each stage, for one token or patch.
std::vector<double> WorkOfStages(const Module& module) {
  std::vector<double> work(module.grid.pp);
  for (const LayerSummary& layer : module.layers) work[layer.stage] += static_cast<double>(layer.forward_flops);
  work.front() += static_cast<double>(module.embed_flops);
  work.back() += static_cast<double>(module.head_flops);
  return work;
}

}  // namespace

void LintStages(const ModuleRecipe& recipe, const Module& module, Diagnostics& diagnostics) {
  if (module.grid.pp < 2) return;
  const std::vector<double> work = WorkOfStages(module);
  // Compared with the mean of the others: one heavy stage is enough to slow the pipeline down.
  const auto heaviest = std::max_element(work.begin(), work.end());
  const double others =
      (std::accumulate(work.begin(), work.end(), 0.0) - *heaviest) / static_cast<double>(work.size() - 1);
  if (*heaviest < kUnevenRatio * others) return;
  const int stage = static_cast<int>(heaviest - work.begin());
  const auto layers = std::count_if(module.layers.begin(), module.layers.end(),
                                    [&](const LayerSummary& layer) { return layer.stage == stage; });
  const char* head = module.carries_loss ? " and the output head" : " and the projector";
  diagnostics.Warning(
      DiagnosticKind::kUnevenStages, LocationOfStages(recipe),
      absl::StrCat(
          "stage ", stage, " of module ", module.name, " (", layers, layers == 1 ? " layer" : " layers",
          stage + 1 == module.grid.pp ? head : "", ") does ",
          others > 0 ? absl::StrFormat("%.1f times the work of the other stages", *heaviest / others) : "all the work"),
      "the other stages wait for it in every microbatch: give it fewer layers, with stage_layers or '|' in the "
      "pattern");
}

}  // namespace planwright
