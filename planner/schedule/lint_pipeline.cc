#include "planner/schedule/lint_pipeline.h"

#include "absl/strings/str_cat.h"

namespace planwright {

void LintMicrobatches(const PipelineGraph& graph, int64_t microbatches, const Location& where,
                      Diagnostics& diagnostics) {
  if (microbatches >= graph.total_stages) return;
  diagnostics.Warning(
      DiagnosticKind::kFewMicrobatches, where,
      absl::StrCat("a step has ", microbatches, microbatches == 1 ? " microbatch" : " microbatches",
                   " for a pipeline of ", graph.total_stages, " stages: some stage is always idle"),
      absl::StrCat("make global_samples at least ", graph.total_stages, " microbatches, or use fewer stages"));
}

}  // namespace planwright
