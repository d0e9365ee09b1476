#include "planner/compile/schedule/order/pipeline_graph.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"

namespace planwright {
namespace {

// Modules, each after all that feed it. Shorter than `count` when there is a circle, because its modules wait for each
// other.
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

void ReportCircle(const std::vector<PipelineModule>& modules, const std::vector<int>& order, const Location& where,
                  Diagnostics& diagnostics) {
  std::vector<std::string> circle;
  for (size_t i = 0; i < modules.size(); ++i) {
    if (std::find(order.begin(), order.end(), static_cast<int>(i)) == order.end()) circle.push_back(modules[i].name);
  }
  diagnostics.Error(DiagnosticKind::kBridgeCircle, where,
                    "modules feed each other in a circle: " + absl::StrJoin(circle, ", "),
                    "remove a bridge, so that samples flow one way");
}

}  // namespace

int PipelineGraph::warmup(int module, int pp_coordinate, int microbatches) const {
  // The last stage has no warmup: it runs the backward of a microbatch right behind its forward.
  return std::min(total_stages - stage(module, pp_coordinate) - 1, microbatches);
}

std::optional<PipelineGraph> BuildPipelineGraph(const std::vector<PipelineModule>& modules,
                                                const std::vector<PipelineEdge>& edges, const Location& where,
                                                Diagnostics& diagnostics) {
  const std::vector<int> order = TopologicalOrder(modules.size(), edges);
  if (order.size() < modules.size()) {
    ReportCircle(modules, order, where, diagnostics);
    return std::nullopt;
  }
  PipelineGraph graph;
  for (const PipelineModule& module : modules) graph.modules.push_back({module.name, module.pp, 0});
  for (int from : order) {
    for (const PipelineEdge& edge : edges) {
      if (edge.from != from) continue;
      const PipelineGraph::Module& source = graph.modules[from];
      // The longest path decides: a shallow encoder beside a deep one begins at stage 0 and runs ahead.
      const int stage = source.first_stage + (edge.same_ranks ? 0 : source.pp);
      graph.modules[edge.to].first_stage = std::max(graph.modules[edge.to].first_stage, stage);
    }
  }
  for (const PipelineGraph::Module& module : graph.modules) {
    graph.total_stages = std::max(graph.total_stages, module.first_stage + module.pp);
  }
  return graph;
}

std::vector<std::string> OneForwardOneBackward(int warmup, int microbatches) {
  Require(warmup >= 0 && warmup <= microbatches, "more warmup forwards than microbatches");
  std::vector<std::string> order;
  for (int i = 0; i < warmup; ++i) order.push_back(absl::StrCat("F", i));
  // From here on each forward is followed by the backward of the oldest microbatch, which frees its activations.
  for (int i = warmup; i < microbatches; ++i) {
    order.push_back(absl::StrCat("F", i));
    order.push_back(absl::StrCat("B", i - warmup));
  }
  for (int i = microbatches - warmup; i < microbatches; ++i) order.push_back(absl::StrCat("B", i));
  return order;
}

int ForwardsBeforeBackward(const std::vector<std::string>& order) {
  const auto backward = [](const std::string& action) { return action[0] == 'B'; };
  return static_cast<int>(std::find_if(order.begin(), order.end(), backward) - order.begin());
}

std::vector<StageSchedule> ScheduleStages(const PipelineGraph& graph, int microbatches) {
  std::vector<StageSchedule> schedule;
  for (size_t m = 0; m < graph.modules.size(); ++m) {
    const int module = static_cast<int>(m);
    for (int stage = 0; stage < graph.modules[m].pp; ++stage) {
      const int warmup = graph.warmup(module, stage, microbatches);
      schedule.push_back({graph.modules[m].name, stage, warmup, OneForwardOneBackward(warmup, microbatches)});
    }
  }
  return schedule;
}

}  // namespace planwright
