// PW07xx to PW09xx: memory, the verification of the plan, and what is not built yet.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kPlanExplanations[] = {
    {kDeviceTooSmall,
     "At the moment of a step when a rank needs most memory, it needs more than its device has: for parameters, "
     "gradients, optimizer state, and the activations that wait for their backward. The message lists them; "
     "docs/memory.md has the formulas.",
     R"(lints: {PW0702: off}
cluster: {gpu: h100_sxm}
batch: {micro_samples: 2})",
     R"(lints: {PW0702: off}
cluster: {gpu: h100_sxm}
batch: {micro_samples: 1})",
     "Use more ranks, smaller microbatches, recompute, or another device. `plan show RECIPE memory` shows the memory "
     "of every role."},

    {kExpertRowsMayNotFit,
     "The plan fits into memory while the busiest rank of an ep group has at most moe.imbalance times the mean number "
     "of expert rows. If all tokens chose the experts of one rank, this rank would need more memory than its device "
     "has. So a step with more rows than planned stops the run, with exit status 17 and the number of rows; no row is "
     "dropped.",
     R"(cluster: {gpu: h100_sxm}
models: {nemotron_hybrid_moe_20l: {moe: {imbalance: 2.0}}}
modules: {radio_encoder: {recompute: full}}
batch: {micro_samples: 2}
lints: {PW0704: off})",
     R"(cluster: {gpu: h100_sxm}
models: {nemotron_hybrid_moe_20l: {moe: {imbalance: 2.0}}}
modules: {radio_encoder: {recompute: full}, language: {recompute: [moe]}}
batch: {micro_samples: 2}
lints: {PW0704: off})",
     "Leave more memory free with a larger ep or tp, recompute, or smaller microbatches. If the load of the experts is "
     "known to be balanced, silence the lint."},

    {kHostTooSmall,
     "`cluster.host_memory` is the memory of a node that its ranks may use. Each rank needs some of it for itself, and "
     "some for the copies of a checkpoint. If the copies do not fit whole, they go through the memory that is left, in "
     "pieces, and training waits for the disk. Here not even that fits. docs/memory.md says what is counted.",
     R"(cluster: {host_memory: 16}
checkpoint: {every_steps: 10})",
     R"(cluster: {host_memory: 64}
checkpoint: {every_steps: 10})",
     "Give the ranks more memory, or place fewer of them on a node. `plan show RECIPE memory` shows what each role "
     "needs."},

    {kRanksWait,
     "Where modules have ranks of their own, those with less work wait for the others in every step. The time of a "
     "step "
     "is predicted from the GPU's data sheet (docs/step_time.md), and ranks of this role wait for more than a third of "
     "it. On ranks that all modules share, nobody waits for another module.",
     R"(data: {max_images: 1})", R"(data: {max_images: 3})",
     "Give the modules as many ranks as they have work, or place them on the same ranks. `plan show RECIPE time` says "
     "what each role does with a step. If the layout is meant to be so, silence the lint."},

    {kBrokenRule,
     "Every plan is verified before it is written, and again by every rank that loads it. This plan breaks a rule. A "
     "recipe cannot cause that: either this program has a bug, or the plan was changed.",
     "", "", "Report it with the recipe. If the plan is a file from somewhere else, compile the recipe again."},

    {kNotBuiltYet,
     "The recipe asks for something that is planned but does not work yet, such as gated delta layers. It is an "
     "error, so that nothing is silently ignored.",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEGE*E"}
lints: {PW0704: off})",
     R"(models:
  nemotron_hybrid_moe_20l: {pattern: "MEME*E"}
lints: {PW0704: off})",
     "`plan explain models.<name>.pattern` lists the layer kinds that work."},
};

}  // namespace

std::span<const Explanation> PlanExplanations() { return kPlanExplanations; }

}  // namespace planwright
