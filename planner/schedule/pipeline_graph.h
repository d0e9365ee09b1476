// Stages of a pipeline whose parts are modules: a graph of modules, each with its own pipeline depth. Formulas: facts
// 2.4.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/plan/plan.h"

namespace planwright {

struct PipelineEdge {
  int from = 0, to = 0;     // indices of modules
  bool same_ranks = false;  // colocated: both run within one microbatch on the same ranks, which makes no further stage
};

struct PipelineModule {
  std::string name;
  int pp = 1;
};

// Stages count from 0 along the longest path.
struct PipelineGraph {
  struct Module {
    std::string name;
    int pp = 1;
    int first_stage = 0;     // stage of its pp rank 0
    bool is_source = false;  // nothing comes in
    bool is_sink = false;    // nothing goes out
  };
  std::vector<Module> modules;  // as given
  int total_stages = 0;

  int stage(int module, int pp_rank) const { return modules[module].first_stage + pp_rank; }
  bool is_first(int module, int pp_rank) const { return modules[module].is_source && pp_rank == 0; }
  bool is_last(int module, int pp_rank) const { return modules[module].is_sink && pp_rank == modules[module].pp - 1; }
  // Forwards before the first backward: min(total_stages - stage - 1, microbatches).
  int warmup(int module, int pp_rank, int microbatches) const;
};

// Nothing, and a problem at `where` (PW0305), when modules feed each other in a circle.
std::optional<PipelineGraph> BuildPipelineGraph(const std::vector<PipelineModule>& modules,
                                                const std::vector<PipelineEdge>& edges, const Location& where,
                                                Diagnostics& diagnostics);

// The 1F1B order of every stage, modules as given, stages ascending.
std::vector<StageSchedule> ScheduleStages(const PipelineGraph& graph, int microbatches);

}  // namespace planwright
