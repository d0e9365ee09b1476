#include "planner/schedule/pipeline_graph.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "planner/schedule/one_f_one_b.h"

namespace planwright {
namespace {

// Modules in an order in which all that feed one come before it; shorter than `count` when there is a circle.
std::vector<int> TopologicalOrder(size_t count, const std::vector<PipelineEdge>& edges) {
  std::vector<int> waiting(count, 0), order;
  for (const PipelineEdge& edge : edges) ++waiting[edge.to];
  for (size_t i = 0; i < count; ++i) {
    if (waiting[i] == 0) order.push_back(static_cast<int>(i));
  }
  for (size_t next = 0; next < order.size(); ++next) {
    for (const PipelineEdge& edge : edges) {
      if (edge.from == order[next] && --waiting[edge.to] == 0) order.push_back(edge.to);
    }
  }
  return order;
}

}  // namespace

int PipelineGraph::warmup(int module, int pp_rank, int microbatches) const {
  return std::min(total_stages - stage(module, pp_rank) - 1, microbatches);
}

std::optional<PipelineGraph> BuildPipelineGraph(const std::vector<PipelineModule>& modules,
                                                const std::vector<PipelineEdge>& edges, const Location& where,
                                                Diagnostics& diagnostics) {
  const std::vector<int> order = TopologicalOrder(modules.size(), edges);
  if (order.size() < modules.size()) {
    std::vector<std::string> circle;
    for (size_t i = 0; i < modules.size(); ++i) {
      if (std::find(order.begin(), order.end(), static_cast<int>(i)) == order.end()) circle.push_back(modules[i].name);
    }
    diagnostics.Error(DiagnosticKind::kBridgeCircle, where,
                      "modules feed each other in a circle: " + absl::StrJoin(circle, ", "),
                      "remove a bridge, so that samples flow one way");
    return std::nullopt;
  }
  PipelineGraph graph;
  for (const PipelineModule& module : modules) graph.modules.push_back({module.name, module.pp, 0, true, true});
  for (int from : order) {
    for (const PipelineEdge& edge : edges) {
      if (edge.from != from) continue;
      const PipelineGraph::Module& source = graph.modules[from];
      PipelineGraph::Module& destination = graph.modules[edge.to];
      const int stage = source.first_stage + (edge.same_ranks ? 0 : source.pp);
      destination.first_stage = std::max(destination.first_stage, stage);
      graph.modules[from].is_sink = false;
      destination.is_source = false;
    }
  }
  for (const PipelineGraph::Module& module : graph.modules) {
    graph.total_stages = std::max(graph.total_stages, module.first_stage + module.pp);
  }
  return graph;
}

std::vector<StageSchedule> ScheduleStages(const PipelineGraph& graph, int microbatches) {
  std::vector<StageSchedule> schedule;
  for (size_t m = 0; m < graph.modules.size(); ++m) {
    const int module = static_cast<int>(m);
    for (int rank = 0; rank < graph.modules[m].pp; ++rank) {
      const int warmup = graph.warmup(module, rank, microbatches);
      schedule.push_back({graph.modules[m].name, rank, warmup, OneForwardOneBackward(warmup, microbatches)});
    }
  }
  return schedule;
}

}  // namespace planwright
