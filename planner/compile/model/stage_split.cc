#include "planner/compile/model/stage_split.h"

#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/limits.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

// Segment i is on rank i % pp: ranks first, then virtual stages.
std::optional<std::vector<LayerStage>> SplitBySegments(const LayerPattern& pattern, const StageSplit& split,
                                                       const Location& where, Diagnostics& diagnostics) {
  const int64_t runs = int64_t{split.pp} * split.virtual_stages;
  if (split.first_layers || split.last_layers || split.stage_layers) {
    diagnostics.Error(DiagnosticKind::kPatternSplit, where,
                      "the pattern contains '|', but the layers of stages are also given in `parallel`",
                      "use only one of the two");
    return std::nullopt;
  }
  if (static_cast<int64_t>(pattern.segments.size()) != runs) {
    diagnostics.Error(
        DiagnosticKind::kPatternSplit, where,
        absl::StrCat("the pattern has ", pattern.segments.size(), " segments, but the pipeline has ", runs,
                     runs == 1 ? " stage (pp " : " stages (pp ", split.pp,
                     split.virtual_stages > 1 ? absl::StrCat(" x ", split.virtual_stages, " virtual stages") : "", ")"),
        runs == 1 ? absl::StrCat("remove every '|', or use pp: ", pattern.segments.size())
                  : absl::StrCat("use '|' ", runs - 1, runs == 2 ? " time" : " times"));
    return std::nullopt;
  }
  std::vector<LayerStage> stages;
  int64_t first = 0;
  for (size_t i = 0; i < pattern.segments.size(); ++i) {
    const int stage = static_cast<int>(i);
    stages.push_back({stage % split.pp, stage / split.pp, pattern.segments[i], first});
    first += static_cast<int64_t>(pattern.segments[i].size());
  }
  return stages;
}

// The number of layers of each stage, for a pattern without `|`. Empty, or not pp numbers, if the layers cannot be
// split in this way.
std::vector<int64_t> StageSizes(int64_t layers, const StageSplit& split) {
  if (split.stage_layers) {
    const int64_t sum = std::accumulate(split.stage_layers->begin(), split.stage_layers->end(), int64_t{0});
    return sum == layers ? *split.stage_layers : std::vector<int64_t>();
  }
  if (split.first_layers.value_or(0) < 0 || split.last_layers.value_or(0) < 0) return {};
  // The first and the last stage may be given. The stages between them share the other layers evenly.
  int64_t middle = layers, stages = split.pp;
  for (const auto& size : {split.first_layers, split.last_layers}) {
    if (!size) continue;
    middle -= *size;
    --stages;
  }
  if (middle < 0 || stages < 0) return {};
  if (stages == 0 ? middle != 0 : middle % stages != 0) return {};
  std::vector<int64_t> sizes(stages, stages == 0 ? 0 : middle / stages);
  if (split.first_layers) sizes.insert(sizes.begin(), *split.first_layers);
  if (split.last_layers) sizes.push_back(*split.last_layers);
  return sizes;
}

// The sizes that the recipe gives, for the message: " (first stage 8, last stage 10)".
std::string GivenSizes(const StageSplit& split) {
  std::vector<std::string> sizes;
  if (split.stage_layers)
    sizes.push_back(absl::StrCat("stage_layers [", absl::StrJoin(*split.stage_layers, ", "), "]"));
  if (split.first_layers) sizes.push_back(absl::StrCat("first stage ", *split.first_layers));
  if (split.last_layers) sizes.push_back(absl::StrCat("last stage ", *split.last_layers));
  return sizes.empty() ? "" : absl::StrCat(" (", absl::StrJoin(sizes, ", "), ")");
}

// The value without its location.
template <typename T>
std::optional<T> ValueOf(const std::optional<Located<T>>& written) {
  return written ? std::optional<T>(**written) : std::nullopt;
}

}  // namespace

std::optional<std::vector<LayerStage>> SplitIntoStages(const LayerPattern& pattern, const StageSplit& split,
                                                       const Location& where, Diagnostics& diagnostics) {
  // The pattern itself gives the stages.
  if (pattern.segments.size() > 1) return SplitBySegments(pattern, split, where, diagnostics);
  if (split.virtual_stages > 1) {
    diagnostics.Error(DiagnosticKind::kPatternSplit, where, "virtual stages need '|' in the pattern",
                      "mark the stages with '|'");
    return std::nullopt;
  }
  const int64_t layers = static_cast<int64_t>(pattern.layers.size());
  // Stages may be without layers, but no more of them are made than a plan has.
  if (split.pp > kMostStages) {
    diagnostics.Error(
        DiagnosticKind::kPatternSplit, where,
        absl::StrCat(layers, " layers cannot be split into ", split.pp, " pipeline stages", GivenSizes(split)),
        absl::StrCat("use a smaller pp: a plan has at most ", kMostStages, " stages"));
    return std::nullopt;
  }
  const std::vector<int64_t> sizes = StageSizes(layers, split);
  if (static_cast<int>(sizes.size()) != split.pp) {
    diagnostics.Error(
        DiagnosticKind::kPatternSplit, where,
        absl::StrCat(layers, " layers cannot be split into ", split.pp, " pipeline stages", GivenSizes(split)),
        absl::StrCat("give stage_layers with ", split.pp, " numbers that sum to ", layers,
                     ", or mark the stages of a pattern with '|'"));
    return std::nullopt;
  }
  std::vector<LayerStage> stages;
  int64_t first = 0;
  for (int rank = 0; rank < split.pp; ++rank) {
    stages.push_back({rank, 0, pattern.layers.substr(first, sizes[rank]), first});
    first += sizes[rank];
  }
  return stages;
}

Location LocationOfStages(const ModuleRecipe& module) {
  if (module.stage_layers) return module.stage_layers->where;
  if (module.first_stage_layers) return module.first_stage_layers->where;
  if (module.last_stage_layers) return module.last_stage_layers->where;
  return module.model.pattern.where;
}

std::optional<std::vector<int>> StagesOfLayers(const ModuleRecipe& module, const LayerPattern& pattern,
                                               Diagnostics& diagnostics) {
  // That there is no layer is told by itself.
  if (pattern.layers.empty() && pattern.segments.size() == 1) return std::vector<int>();
  const StageSplit split = {.pp = static_cast<int>(*module.pp),
                            .first_layers = ValueOf(module.first_stage_layers),
                            .last_layers = ValueOf(module.last_stage_layers),
                            .stage_layers = ValueOf(module.stage_layers)};
  Diagnostics found;
  const auto runs = SplitIntoStages(pattern, split, LocationOfStages(module), found);
  for (Diagnostic problem : found.as_found()) {
    if (module.pp.where.known())
      problem.notes.push_back({module.pp.where, absl::StrCat("pp is ", *module.pp, " here")});
    diagnostics.Add(std::move(problem));
  }
  if (!runs) return std::nullopt;
  // From runs of layers to the stage of each layer. Recipes have no virtual stages, so pp_rank is the stage.
  std::vector<int> stages;
  for (const LayerStage& run : *runs) stages.insert(stages.end(), run.layers.size(), run.pp_rank);
  return stages;
}

}  // namespace planwright
