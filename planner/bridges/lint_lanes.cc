#include "planner/bridges/lint_lanes.h"

#include "absl/strings/str_cat.h"

namespace planwright {

void LintLanes(const Recipe& recipe, const ModuleRecipe& encoder, const Grid& source, int language_lanes,
               Diagnostics& diagnostics) {
  const Located<int64_t>& micro = recipe.batch.micro_samples;
  const int64_t samples = *micro * language_lanes, idle = source.dp - samples,
                ranks = samples * source.tp * source.cp * source.pp;
  if (idle <= 0) return;
  Diagnostic& warning = diagnostics.Warning(
      DiagnosticKind::kIdleLanes, encoder.ranks.where.known() ? encoder.ranks.where : encoder.name.where,
      absl::StrCat(idle, " of the ", source.dp, " lanes of encoder ", *encoder.name,
                   idle == 1 ? " never has" : " never have", " a sample: a microbatch is micro_samples ", *micro,
                   " x language dp ", language_lanes, " = ", samples),
      absl::StrCat("give the encoder ", ranks, ranks == 1 ? " rank" : " ranks",
                   ", or use micro_samples: ", (source.dp + language_lanes - 1) / language_lanes));
  if (micro.where.known()) warning.notes.push_back({micro.where, absl::StrCat("micro_samples is ", *micro, " here")});
}

}  // namespace planwright
