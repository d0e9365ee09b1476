#include "planner/compile/budget/check_size.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/base/text/limits.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

struct LayerCount {
  int64_t count = 0;
  Location where;
};

// Letters of a pattern are layers; '|' and '/' only separate them.
LayerCount LayersOf(const ModelRecipe& model) {
  const Located<std::string> pattern = model.pattern;
  return {std::count_if(pattern->begin(), pattern->end(), [](char c) { return c != '|' && c != '/'; }), pattern.where};
}

bool CheckLayers(const Recipe& recipe, Diagnostics& diagnostics) {
  int64_t layers = 0;
  LayerCount longest;  // the message points at this module
  for (const ModuleRecipe& module : recipe.modules) {
    const LayerCount its = LayersOf(module.model);
    layers += its.count;
    if (its.count > longest.count) longest = its;
  }
  if (layers <= kMostLayers) return true;
  diagnostics.Error(DiagnosticKind::kOutOfRange, longest.where,
                    absl::StrCat("the modules have ", layers, " layers; a plan has at most ", kMostLayers),
                    "use fewer layers or modules");
  return false;
}

bool CheckStages(const Recipe& recipe, int64_t stages, Diagnostics& diagnostics) {
  if (stages <= kMostStages) return true;
  const auto deepest = std::max_element(recipe.modules.begin(), recipe.modules.end(),
                                        [](const ModuleRecipe& a, const ModuleRecipe& b) { return *a.pp < *b.pp; });
  diagnostics.Error(DiagnosticKind::kOutOfRange, deepest->pp.where,
                    absl::StrCat("the modules have ", stages, " pipeline stages; a plan has at most ", kMostStages),
                    "use a smaller pp");
  return false;
}

bool CheckBuckets(const Recipe& recipe, int64_t stages, Diagnostics& diagnostics) {
  const Located<int64_t>& buckets = recipe.gradients.buckets;
  if (!AllKnown(buckets)) return false;
  // `buckets` counts for each kind of gradient, and a stage has up to three: dense sharded and whole, and experts.
  const int64_t most = kMostBuckets / 3 / stages;
  if (*buckets <= most) return true;
  diagnostics.Error(
      DiagnosticKind::kOutOfRange, buckets.where,
      absl::StrCat(*buckets, " buckets for each of ", stages, stages == 1 ? " pipeline stage" : " pipeline stages"),
      absl::StrCat("buckets x stages can be ", kMostBuckets / 3, ": use buckets ", most, " or less"));
  return false;
}

bool CheckStep(const Recipe& recipe, int64_t stages, int64_t lanes, Diagnostics& diagnostics) {
  const int64_t block = *recipe.batch.micro_samples * lanes, microbatches = *recipe.batch.global_samples / block;
  const auto bridges = static_cast<int64_t>(recipe.bridges.size());
  // Programs and their proof grow with each passage of a microbatch through a stage or over a bridge.
  const int64_t most = kMostPassages / (stages + bridges);
  if (microbatches <= most) return true;
  diagnostics.Error(
      DiagnosticKind::kOutOfRange, recipe.batch.global_samples.where,
      absl::StrCat("a step of ", microbatches, " microbatches through ", stages, stages == 1 ? " stage" : " stages",
                   " and over ", bridges, bridges == 1 ? " bridge is" : " bridges is", " too long to plan"),
      absl::StrCat("microbatches x (stages + bridges) can be ", kMostPassages, ": use global_samples ", most * block,
                   " or less, or more samples a microbatch or lanes"));
  return false;
}

}  // namespace

// In this order because each check counts on those before it: CheckBuckets divides by a number of stages that is
// bounded.
bool CheckPlanSize(const Recipe& recipe, const std::vector<Grid>& grids, int64_t lanes, Diagnostics& diagnostics) {
  int64_t stages = 0;
  for (const Grid& grid : grids) stages += grid.pp;
  if (!CheckLayers(recipe, diagnostics) || !CheckStages(recipe, stages, diagnostics)) return false;
  return CheckBuckets(recipe, stages, diagnostics) && CheckStep(recipe, stages, lanes, diagnostics);
}

}  // namespace planwright
