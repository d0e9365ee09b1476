// The keys of a step and of the whole training: sizes, rates, optimizer, gradients and number formats.
#include "planner/recipe/key_tables.h"
#include "planner/recipe/recipe.h"

namespace planwright {
namespace {

using enum Need;

constexpr NumberRange kBatch{1, 65536};
// Samples of a whole training. Up to here a double counts exactly, and sums stay far below 64 bits.
constexpr NumberRange kSamples{1, 1e15};
constexpr NumberRange kSamplesOrNone{0, 1e15};

constexpr KeySpec kTrainingKeys[] = {
    {"batch", "", Section<&Recipe::batch>, kRequired, "", kAny, "", "sizes of a step"},
    {"batch.global_samples", "", To<&BatchRecipe::global_samples>, kRequired, "", kBatch, "",
     "samples of one optimizer step"},
    {"batch.micro_samples", "", To<&BatchRecipe::micro_samples>, kOptional, "1", kSize, "",
     "samples of a microbatch on each language lane"},
    {"batch.sequence_length",
     "",
     To<&BatchRecipe::sequence_length>,
     kRequired,
     "",
     {2, 16777216},
     "",
     "number of tokens of a sample"},

    {"budget", "", Section<&Recipe::budget>, kRequired, "", kAny, "",
     "length of the training, learning rate and weight decay, all counted in samples"},
    {"budget.train_samples", "", To<&BudgetRecipe::train_samples>, kRequired, "", kSamples, "",
     "samples to train on; the last step is a full batch"},
    {"budget.learning_rate", "", Section<&BudgetRecipe::learning_rate>, kRequired, "", kAny, "",
     "learning rate over samples"},
    {"budget.learning_rate.peak", "", To<&LearningRateRecipe::peak>, kRequired, "", kLearningRate, "",
     "highest learning rate"},
    {"budget.learning_rate.min", "", To<&LearningRateRecipe::min>, kOptional, "0.0", kLearningRate, "",
     "learning rate after the decay"},
    {"budget.learning_rate.init", "", To<&LearningRateRecipe::init>, kOptional, "0.0", kLearningRate, "",
     "learning rate at the start of the warmup"},
    {"budget.learning_rate.warmup_samples", "", To<&LearningRateRecipe::warmup_samples>, kOptional, "", kSamplesOrNone,
     "", "length of the warmup in samples"},
    {"budget.learning_rate.warmup_fraction", "", To<&LearningRateRecipe::warmup_fraction>, kOptional, "", kBelowOne, "",
     "length of the warmup as a fraction of decay_samples"},
    {"budget.learning_rate.decay_samples", "", To<&LearningRateRecipe::decay_samples>, kOptional, "", kSamples, "",
     "sample count at which the decay ends, from the start of training (not a length); without it train_samples"},
    {"budget.learning_rate.style", "", To<&LearningRateRecipe::style>, kOptional, "constant", kAny,
     "constant|linear|cosine|inverse_sqrt|wsd", "shape of the learning rate after the warmup"},
    {"budget.learning_rate.wsd", "", kMap, kOptional, "", kAny, "", "the decay at the end of style wsd"},
    {"budget.learning_rate.wsd.decay_samples", "", To<&LearningRateRecipe::wsd_decay_samples>, kOptional, "", kSamples,
     "", "length of this decay in samples"},
    {"budget.learning_rate.wsd.style", "", To<&LearningRateRecipe::wsd_style>, kOptional, "", kAny,
     "linear|cosine|exponential|minus_sqrt", "shape of this decay"},
    {"budget.weight_decay", "", Section<&BudgetRecipe::weight_decay>, kOptional, "", kAny, "",
     "weight decay over samples; it reaches `end` at train_samples"},
    {"budget.weight_decay.start", "", To<&WeightDecayRecipe::start>, kOptional, "0.0", kWeightDecay, "",
     "weight decay at the first sample"},
    {"budget.weight_decay.end", "", To<&WeightDecayRecipe::end>, kOptional, "0.0", kWeightDecay, "",
     "weight decay at the last sample"},
    {"budget.weight_decay.style", "", To<&WeightDecayRecipe::style>, kOptional, "constant", kAny,
     "constant|linear|cosine", "shape between start and end"},

    {"optimizer", "", Section<&Recipe::optimizer>, kOptional, "", kAny, "", "the optimizer"},
    {"optimizer.betas", "", ToPair<&OptimizerPlan::beta1, &OptimizerPlan::beta2>, kOptional, "[0.9, 0.95]", kBelowOne,
     "", "decay rates of the two moments"},
    {"optimizer.eps", "", To<&OptimizerPlan::eps>, kOptional, "1.0e-8", kEpsilon, "",
     "number that is added to the denominator"},
    {"optimizer.clip_grad_norm", "", To<&OptimizerPlan::clip_grad_norm>, kOptional, "1.0", kNorm, "",
     "largest norm of the gradients of all modules; larger gradients are scaled down to it"},
    {"optimizer.parts", "", kListOfMaps, kOptional, "", kAny, "",
     "rates of some parameters; of the parts that match a parameter the first counts, and without one those of "
     "`budget` do"},
    {"optimizer.parts[].match", "", To<&RatePartRecipe::match>, kRequired, "", kAny, "",
     "module, part of one (MODULE.backbone and MODULE.projection of an encoder, MODULE.adapter), or published name, in "
     "which * is any text"},
    {"optimizer.parts[].learning_rate", "", To<&RatePartRecipe::learning_rate>, kOptional, "", kLearningRate, "",
     "its learning rate where that of `budget` is at its peak; in all steps the two have this ratio"},
    {"optimizer.parts[].weight_decay", "", To<&RatePartRecipe::weight_decay>, kOptional, "", kWeightDecay, "",
     "its weight decay where that of `budget` is at its end; in all steps the two have this ratio; norms and biases "
     "have none in any part"},

    {"gradients", "", Section<&Recipe::gradients>, kOptional, "", kAny, "",
     "how gradients are summed: in fp32, and in fp64 if parameters are fp64"},
    {"gradients.overlap_reduce", "", To<&GradientsRecipe::overlap_reduce>, kOptional, "false", kAny, "",
     "reduce gradients while the backward still runs"},
    {"gradients.overlap_gather", "", To<&GradientsRecipe::overlap_gather>, kOptional, "false", kAny, "",
     "gather parameters while the next forward already runs"},
    {"gradients.buckets", "", To<&GradientsRecipe::buckets>, kOptional, "1", kSize, "",
     "number of parts in which the gradients of a module are reduced"},

    {"precision", "", kMap, kOptional, "", kAny, "", "number formats"},
    {"precision.params", "", To<&Recipe::precision>, kOptional, "bf16", kAny, "bf16|fp32|fp64",
     "type of parameters and activations; with fp64 all numbers are fp64"},
    {"precision.deterministic", "", To<&Recipe::deterministic>, kOptional, "false", kAny, "",
     "GPU kernels that give the same bits in every run; attention is slower with them"},
};

}  // namespace

std::span<const KeySpec> KeysOfTraining() { return kTrainingKeys; }

}  // namespace planwright
