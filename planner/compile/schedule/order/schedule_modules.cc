#include "planner/compile/schedule/order/schedule_modules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/compile/schedule/order/pipeline_graph.h"

namespace planwright {
namespace {

int IndexOf(const std::vector<Module>& modules, const std::string& name) {
  const auto named = [&](const Module& module) { return module.name == name; };
  return static_cast<int>(std::find_if(modules.begin(), modules.end(), named) - modules.begin());
}

// With fewer microbatches than stages the pipeline is never full.
void LintMicrobatches(const PipelineGraph& graph, int64_t microbatches, const Location& where,
                      Diagnostics& diagnostics) {
  if (microbatches >= graph.total_stages) return;
  diagnostics.Warning(
      DiagnosticKind::kFewMicrobatches, where,
      absl::StrCat("a step has ", microbatches, microbatches == 1 ? " microbatch" : " microbatches",
                   " for a pipeline of ", graph.total_stages, " stages: some stage is always idle"),
      absl::StrCat("make global_samples at least ", graph.total_stages, " microbatches, or use fewer stages"));
}

}  // namespace

std::optional<std::vector<StageSchedule>> ScheduleModules(const Recipe& recipe, const std::vector<Module>& modules,
                                                          const std::vector<Bridge>& bridges, int64_t microbatches,
                                                          Diagnostics& diagnostics) {
  std::vector<PipelineModule> nodes;
  for (const Module& module : modules) nodes.push_back({module.name, module.grid.pp});
  std::vector<PipelineEdge> edges;
  for (const Bridge& bridge : bridges)
    edges.push_back({IndexOf(modules, bridge.from), IndexOf(modules, bridge.to), bridge.kind == "colocated"});
  // A circle has no one bridge to blame: the first one stands for all.
  const Location where = recipe.bridges.empty() ? Location{} : recipe.bridges.front().where;
  const auto graph = BuildPipelineGraph(nodes, edges, where, diagnostics);
  if (!graph) return std::nullopt;
  LintMicrobatches(*graph, microbatches, recipe.batch.global_samples.where, diagnostics);
  return ScheduleStages(*graph, static_cast<int>(microbatches));
}

}  // namespace planwright
