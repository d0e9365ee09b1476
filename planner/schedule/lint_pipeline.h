// Pipelines that work and leave ranks waiting.
#pragma once

#include "planner/diagnostics/diagnostic.h"
#include "planner/schedule/pipeline_graph.h"

namespace planwright {

// Warning PW0411: with fewer microbatches than stages no moment has every stage at work (facts 1.5). `where`: the
// global batch.
void LintMicrobatches(const PipelineGraph& graph, int64_t microbatches, const Location& where,
                      Diagnostics& diagnostics);

}  // namespace planwright
