// The shipped profile of an H100 beside runs on the same card, of which it has only the first. The table stands in
// docs/measure.md#how-far-off, as it is. `tests/gpu/measure --parts profile` makes both again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "planner/estimate/step_time.h"
#include "planner/run_files/file_io.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

struct MeasuredRun {
  const char* what;
  std::vector<std::string> overrides;
  double measured;  // milliseconds of a step: the median of steps 6 to 12
};
const MeasuredRun kRuns[] = {
    {"as measured", {}, 630.7},
    {"samples of 6,144 tokens", {"batch.sequence_length=6144", "data.text_tokens=6144"}, 482.2},
    {"12 experts", {"models.nemotron_hybrid_moe_20l.moe.experts=12"}, 623.9},
    {"recompute: full", {"modules.language.recompute=full"}, 760.7},
    {"8 microbatches",
     {"batch.global_samples=8", "budget.train_samples=160", "budget.learning_rate.decay_samples=160"},
     1229.4}};

TEST(MeasuredProfile, PredictsRunsThatItDoesNotHave) {
  std::string table;
  double worst = 0;
  for (const MeasuredRun& run : kRuns) {
    std::vector<std::string> overrides = {"models.nemotron_hybrid_moe_20l.moe.experts=16",
                                          "cluster.gpu=h100_sxm",
                                          "batch.global_samples=4",
                                          "budget.train_samples=80",
                                          "budget.learning_rate.decay_samples=80",
                                          "cluster.profile=" + InSource("recipes/profiles/h100_sxm.json")};
    overrides.insert(overrides.end(), run.overrides.begin(), run.overrides.end());
    const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_lm_20l_1g.yaml"), overrides);
    const double predicted = TimeStep(plan).length * 1e3, off = predicted / run.measured - 1;
    worst = std::max(worst, std::abs(off));
    absl::StrAppendFormat(&table, "| %s | %.1f ms | %.1f ms | %+.1f %% |\n", run.what, predicted, run.measured,
                          off * 100);
  }
  EXPECT_LT(worst, 0.015);
  EXPECT_THAT(ReadWholeFile(InSource("docs/measure.md"), int64_t{1} << 20).value(), ::testing::HasSubstr(table))
      << table;
}

}  // namespace
}  // namespace planwright
