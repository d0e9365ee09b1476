#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kBatchDoesNotDivide,
     "A step takes its samples in microbatches, each of micro_samples for every language lane: global_samples must be "
     "a multiple of "
     "micro_samples x dp of the language module.",
     "batch: {global_samples: 9}", "batch: {global_samples: 16}",
     "Take one of the two nearest numbers in the help, or change the lanes."},

    {kLearningRateRange, "The learning rate rises from init to peak and falls to min: both are at most peak.",
     "budget: {learning_rate: {peak: 2.0e-4, min: 2.0e-3}}", "budget: {learning_rate: {peak: 2.0e-3, min: 2.0e-4}}",
     "Look for a slip in an exponent."},

    {kWarmupTooLong,
     "decay_samples is the sample at which the decay ends, counted from the start of training. The warmup must end "
     "before it.",
     "budget: {learning_rate: {warmup_samples: 80, decay_samples: 80}}",
     "budget: {learning_rate: {warmup_samples: 16, decay_samples: 80}}",
     "Shorten the warmup or move the end. Do not give decay_samples as a length."},

    {kWsdIncomplete,
     "Style wsd keeps the rate at its peak and lets it fall at the end. How long that fall is, and its shape, have no "
     "default.",
     "budget: {learning_rate: {style: wsd}}",
     "budget: {learning_rate: {style: wsd, wsd: {decay_samples: 24, style: minus_sqrt}}}",
     "Give wsd.decay_samples, a length, and wsd.style."},

    {kWeightDecayRange, "Weight decay rises from start to end, or is constant with both equal.",
     "budget: {weight_decay: {start: 0.1, end: 0.05, style: linear}}",
     "budget: {weight_decay: {start: 0.05, end: 0.1, style: linear}}", "Exchange the two, or make them equal."},

    {kWarmupTwice, "The warmup is given as a number of samples and as a fraction of decay_samples.",
     "budget: {learning_rate: {warmup_samples: 8, warmup_fraction: 0.1}}",
     "budget: {learning_rate: {warmup_samples: 8}}",
     "Keep one. If the other stands in a file that this one extends, use the form that stands there."},

    {kDecayEndsEarly,
     "From decay_samples to the end of training every step uses the minimum rate. decay_samples is an absolute end and "
     "not a length: "
     "whoever takes the warmup off, as a well-known production recipe does, trains as many samples at the end as the "
     "warmup has, at the "
     "lowest rate.",
     "budget: {train_samples: 80, learning_rate: {decay_samples: 40}}",
     "budget: {train_samples: 80, learning_rate: {decay_samples: 80}}",
     "Make decay_samples equal to train_samples, or leave it out. If the low end is meant, silence the lint."},

    {kWsdUnused,
     "The recipe describes the fall of style wsd, and the style is another one: the description has no effect.",
     "budget: {learning_rate: {style: cosine, wsd: {decay_samples: 24, style: linear}}}",
     "budget: {learning_rate: {style: wsd, wsd: {decay_samples: 24, style: linear}}}",
     "Use style: wsd, or remove `wsd`."},

    {kSamplesPastBudget,
     "Every step is a full batch, so that steps = train_samples / global_samples, rounded up, and the last one trains "
     "on samples beyond "
     "the budget. Other frameworks round down and leave samples out.",
     "budget: {train_samples: 77}", "budget: {train_samples: 80}",
     "Use a multiple of global_samples; the help has the two nearest. Few samples of many do no harm: silence the lint "
     "then."},

    {kWarmupNeverEnds,
     "The last step begins before the warmup ends, so that no step trains at the peak rate. Often a recipe for a short "
     "test that extends "
     "a long one.",
     "budget: {learning_rate: {warmup_samples: 80, decay_samples: 160}}",
     "budget: {learning_rate: {warmup_samples: 16, decay_samples: 80}}", "Shorten the warmup or train longer."},

    {kFewMicrobatches,
     "A pipeline works while different stages hold different microbatches. With fewer microbatches than stages some "
     "stage is idle at "
     "every moment: of a step with m microbatches over s stages a part (s - 1) / (m + s - 1) is lost.",
     "batch: {global_samples: 2}", "batch: {global_samples: 8}",
     "Use a larger global batch, fewer lanes, or fewer stages. An encoder on ranks of its own is a stage."},

    {kGradientPrecision,
     "Gradients that are summed in bf16 lose what small steps add: 8 bits remain after each addition, more is lost on "
     "every rank more, "
     "and the curve departs from that of another layout at the second step. No log shows it, and this product promises "
     "curves that no "
     "layout changes, so it is an error and no lint.",
     "gradients: {reduce_dtype: bf16}", "gradients: {reduce_dtype: fp32}",
     "Use fp32. What it costs in traffic, overlap_reduce hides."},

    {kWsdTailTooLong,
     "The fall of style wsd is counted back from decay_samples, and begins before the warmup ends: behind the warmup "
     "the rate drops at "
     "once to where the fall is by then.",
     "budget: {learning_rate: {warmup_samples: 16, style: wsd, wsd: {decay_samples: 72, style: linear}}}",
     "budget: {learning_rate: {warmup_samples: 16, style: wsd, wsd: {decay_samples: 24, style: linear}}}",
     "wsd.decay_samples is a length: at most decay_samples less the warmup."},

    {kRateSettingUnused,
     "A rate is given that no sample is trained with: `init`, from which a warmup would rise, without a warmup; or "
     "`min`, to which a decay would "
     "fall, with style constant, which keeps the peak for ever.",
     "budget: {learning_rate: {init: 1.0e-5}}", "budget: {learning_rate: {init: 1.0e-5, warmup_samples: 16}}",
     "Add what would use it, or remove it."},
};

}  // namespace

std::span<const Explanation> BudgetExplanations() { return kExplanations; }

}  // namespace planwright
