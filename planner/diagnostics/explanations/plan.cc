#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kDeviceTooSmall,
     "The fullest moment of a rank's step needs more memory than its device has: parameters, gradients and optimizer "
     "state, and the activations "
     "that wait for their backward. The message has them apart, and docs/memory.md the formulas.",
     R"(lints: {PW0702: off}
cluster: {gpu: h100_sxm}
batch: {micro_samples: 2})",
     R"(lints: {PW0702: off}
cluster: {gpu: h100_sxm}
batch: {micro_samples: 1})",
     "Use more ranks, smaller microbatches, recompute, or another device. `plan show RECIPE memory` shows every role."},

    {kExpertRowsMayNotFit,
     "Memory is planned for moe.imbalance times the mean of rows on the busiest expert rank. If all tokens chose the "
     "experts of one rank, it would need "
     "more than its device has: such a step stops and names layer and rows.",
     R"(cluster: {gpu: h100_sxm}
modules: {radio_encoder: {recompute: full}}
batch: {micro_samples: 2})",
     R"(cluster: {gpu: h100_sxm}
modules: {radio_encoder: {recompute: full}, language: {recompute: [moe]}}
batch: {micro_samples: 2})",
     "Leave room: a larger ep or tp, recompute, smaller microbatches. Or trust the balancing, and silence the lint."},

    {kBrokenRule,
     "Every plan is proved before it is written and again by every rank that loads it, and this one breaks a rule. A "
     "recipe cannot cause "
     "that: it is a fault of this program, or of whoever changed the plan.",
     "", "", "Report it with the recipe. If the plan is a file that came from elsewhere, compile the recipe again."},

    {kNotBuiltYet,
     "What the recipe asks for is meant to work and does not yet. It is refused by name, so that no setting is without "
     "effect.",
     "launch: {slurm: {partition: batch}}", "launch: {}", "Leave it out, as the help says."},
};

}  // namespace

std::span<const Explanation> PlanExplanations() { return kExplanations; }

}  // namespace planwright
