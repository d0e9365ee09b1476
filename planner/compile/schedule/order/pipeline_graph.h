// The pipeline of a recipe: a graph of modules, each with its own number of stages, and the 1F1B order in which every
// stage runs its forwards and backwards. Stages are counted through the whole graph, so that an encoder and the
// language model behind it form one pipeline. Formulas: docs/layouts/pipeline.md#stages-of-several-modules and
// docs/layouts/pipeline.md#1f1b.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/recipe/diagnostics/diagnostic.h"

namespace planwright {

struct PipelineModule {
  std::string name;
  int pp = 1;  // stages of this module
};

struct PipelineEdge {
  int from = 0, to = 0;     // indices of modules
  bool same_ranks = false;  // colocated: both modules run one microbatch on the same ranks and share a stage
};

// Where each module begins in the pipeline. Stages count from 0, along the longest path.
struct PipelineGraph {
  struct Module {
    std::string name;
    int pp = 1;
    int first_stage = 0;  // stage of its pp coordinate 0
  };
  std::vector<Module> modules;  // as given
  int total_stages = 0;

  int stage(int module, int pp_coordinate) const { return modules[module].first_stage + pp_coordinate; }
  // Forwards before the first pair of forward and backward: min(total_stages - stage - 1, microbatches).
  int warmup(int module, int pp_coordinate, int microbatches) const;
};

// Nothing, and a problem at `where` (PW0305), when modules feed each other in a circle.
std::optional<PipelineGraph> BuildPipelineGraph(const std::vector<PipelineModule>& modules,
                                                const std::vector<PipelineEdge>& edges, const Location& where,
                                                Diagnostics& diagnostics);

// The order of one stage: `warmup` forwards, then forward and backward in turn, then the remaining backwards. "F3" is
// the forward of microbatch 3, "B3" its backward. Microbatches count from 0.
std::vector<std::string> OneForwardOneBackward(int warmup, int microbatches);

// How many forwards an order runs before its first backward. An order without backwards: all of its forwards.
int ForwardsBeforeBackward(const std::vector<std::string>& order);

// The 1F1B order of every stage: modules as given, stages ascending.
std::vector<StageSchedule> ScheduleStages(const PipelineGraph& graph, int microbatches);

}  // namespace planwright
