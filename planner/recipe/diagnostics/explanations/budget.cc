// PW04xx: batch, budget, learning rate and gradients.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kBudgetExplanations[] = {
    {kBatchDoesNotDivide,
     "A step consists of whole microbatches, and each microbatch has micro_samples for every language lane. "
     "global_samples must be a multiple of micro_samples x dp of the language module.",
     "batch: {global_samples: 9}", "batch: {global_samples: 16}",
     "Use one of the two nearest numbers in the help, or change the number of lanes."},

    {kLearningRateRange,
     "The learning rate rises from init to peak and then falls to min. Both init and min must be at most peak.",
     "budget: {learning_rate: {peak: 2.0e-4, min: 2.0e-3}}", "budget: {learning_rate: {peak: 2.0e-3, min: 2.0e-4}}",
     "Look for a mistake in an exponent."},

    {kWarmupTooLong,
     "decay_samples is the sample count at which the decay ends, counted from the start of training. The warmup must "
     "end before it.",
     "budget: {learning_rate: {warmup_samples: 80, decay_samples: 80}}",
     "budget: {learning_rate: {warmup_samples: 16, decay_samples: 80}}",
     "Shorten the warmup, or increase decay_samples. decay_samples is not the length of the decay."},

    {kWsdIncomplete,
     "Style wsd keeps the learning rate at its peak and decays it at the end. The length and the shape of this decay "
     "have no default.",
     "budget: {learning_rate: {style: wsd}}",
     "budget: {learning_rate: {style: wsd, wsd: {decay_samples: 24, style: minus_sqrt}}}",
     "Add wsd.decay_samples, the length of the decay in samples, and wsd.style."},

    {kWeightDecayRange,
     "The weight decay rises from start to end, so start must be at most end. With style constant both must be equal.",
     "budget: {weight_decay: {start: 0.1, end: 0.05, style: linear}}",
     "budget: {weight_decay: {start: 0.05, end: 0.1, style: linear}}", "Exchange the two values, or make them equal."},

    {kWarmupTwice, "The warmup is given both as a number of samples and as a fraction of decay_samples.",
     "budget: {learning_rate: {warmup_samples: 8, warmup_fraction: 0.1}}",
     "budget: {learning_rate: {warmup_samples: 8}}",
     "Keep one of the two. If an extended file gives the other one, use the same key as that file."},

    {kDecayEndsEarly,
     "From decay_samples to the end of training, all steps use the minimum learning rate. decay_samples is counted "
     "from the start of training and includes the warmup. A recipe that subtracts the warmup therefore trains as many "
     "samples as the warmup has at the minimum rate.",
     "budget: {train_samples: 80, learning_rate: {decay_samples: 40}}",
     "budget: {train_samples: 80, learning_rate: {decay_samples: 80}}",
     "Make decay_samples equal to train_samples, or remove it. If the steps at the minimum rate are intended, silence "
     "the lint."},

    {kWsdUnused,
     "The recipe describes the decay of style wsd, but the style is another one. The description has no effect.",
     "budget: {learning_rate: {style: cosine, wsd: {decay_samples: 24, style: linear}}}",
     "budget: {learning_rate: {style: wsd, wsd: {decay_samples: 24, style: linear}}}",
     "Use style: wsd, or remove `wsd`."},

    {kSamplesPastBudget,
     "Every step trains on a full global batch. The number of steps is train_samples / global_samples, rounded up, so "
     "the last step trains on more samples than the budget has. Other frameworks round down and skip the rest of the "
     "samples.",
     "budget: {train_samples: 77}", "budget: {train_samples: 80}",
     "Use a multiple of global_samples; the help shows the two nearest. If the additional samples do no harm, silence "
     "the lint."},

    {kWarmupNeverEnds,
     "The last step begins before the warmup ends, so no step uses the peak learning rate. Often a recipe for a short "
     "test extends a recipe for a long training.",
     "budget: {learning_rate: {warmup_samples: 80, decay_samples: 160}}",
     "budget: {learning_rate: {warmup_samples: 16, decay_samples: 80}}", "Shorten the warmup, or train longer."},

    {kFewMicrobatches,
     "In a pipeline the stages work on different microbatches at the same time. If a step has fewer microbatches than "
     "the pipeline has stages, at least one stage is idle at any time. With m microbatches and s stages, the fraction "
     "(s - 1) / (m + s - 1) of a step is lost.",
     R"(batch: {global_samples: 2}
lints: {PW0704: off})",
     R"(batch: {global_samples: 8}
lints: {PW0704: off})",
     "Use a larger global batch, fewer lanes, or fewer stages. An encoder on its own ranks counts as a stage."},

    {kWsdTailTooLong,
     "The decay of style wsd ends at decay_samples and is so long that it begins before the warmup ends. After the "
     "warmup the rate drops at once to the value that the decay has at that point.",
     "budget: {learning_rate: {warmup_samples: 16, style: wsd, wsd: {decay_samples: 72, style: linear}}}",
     "budget: {learning_rate: {warmup_samples: 16, style: wsd, wsd: {decay_samples: 24, style: linear}}}",
     "wsd.decay_samples is a length. Use at most decay_samples minus the warmup."},

    {kRateSettingUnused,
     "The recipe gives a learning rate that no sample is trained with. `init` is the rate at which a warmup starts, "
     "but there is no warmup. Or `min` is the rate at which a decay ends, but style constant never decays.",
     "budget: {learning_rate: {init: 1.0e-5}}", "budget: {learning_rate: {init: 1.0e-5, warmup_samples: 16}}",
     "Add a warmup or a decay, or remove the rate."},

    {kEvaluationBetweenSteps,
     "An evaluation reads the weights that a step has left. So `evaluation.every_samples` counts whole steps: it is a "
     "multiple of `batch.global_samples`.",
     R"(evaluation: {every_samples: 10, sets: [{name: held_out, samples: 16, seed: 4321}]})",
     R"(evaluation: {every_samples: 16, sets: [{name: held_out, samples: 16, seed: 4321}]})",
     "Use a multiple of the samples of a step."},

    {kNothingSaved,
     "Without `checkpoint.every_steps` a run writes no checkpoint, not even after its last step: its weights are gone "
     "when it ends, and after a failure it begins anew. That is right for tests and measurements. So only a training "
     "that is predicted to take more than an hour (docs/step_time.md) is warned of; on a device of unknown speed none "
     "is.",
     R"(budget: {train_samples: 80000, learning_rate: {decay_samples: 80000}})",
     R"(budget: {train_samples: 80000, learning_rate: {decay_samples: 80000}}
checkpoint: {every_steps: 2000})",
     "Add checkpoint.every_steps. What a checkpoint costs says `plan show RECIPE time`; checkpoint.keep_last bounds "
     "how many stay. If the run is a measurement, silence the lint."},
};

}  // namespace

std::span<const Explanation> BudgetExplanations() { return kBudgetExplanations; }

}  // namespace planwright
