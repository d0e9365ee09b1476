// The keys of evaluations beside training, and of when a run stops because its loss grows.
#include "planner/base/text/limits.h"
#include "planner/recipe/key_tables.h"
#include "planner/recipe/recipe.h"

namespace planwright {
namespace {

using enum Need;

constexpr NumberRange kWindow{1, static_cast<double>(kMostDivergenceWindow)};
constexpr NumberRange kEvaluated{1, static_cast<double>(kMostSamples)};

constexpr KeySpec kEvaluationKeys[] = {
    {"evaluation", "", Section<&Recipe::evaluation>, kOptional, "", kAny, "",
     "how well the model does on samples that it is not trained on"},
    {"evaluation.every_samples", "", To<&EvaluationRecipe::every_samples>, kRequired, "", kEvaluated, "",
     "samples between evaluations, a multiple of batch.global_samples; there is one more before the first step, and "
     "one "
     "after the last"},
    {"evaluation.sets", "", kListOfMaps, kRequired, "", kAny, "", "what is evaluated: each set has a loss of its own"},
    {"evaluation.sets[].name", "", To<&EvaluationSetRecipe::name>, kRequired, "", kAny, "",
     "name of the set in logs, curves and `checkpoint.keep_best`"},
    {"evaluation.sets[].samples", "", To<&EvaluationSetRecipe::samples>, kRequired, "", kEvaluated, "all",
     "how many samples of the set are read, from its first on; all: of data of kind sources each of them once"},
    {"evaluation.sets[].sources", "", kListOfMaps, kOptional, "", kAny, "",
     "of data of kind sources, which needs them: where the documents come from, as `data.sources`"},
    {"evaluation.sets[].sources[].name", "", To<&SourceRecipe::name>, kOptional, "", kAny, "",
     "name in tables, logs and index files, and of the draws of its order: another name, and other samples are first; "
     "without it source_0, source_1, ... by position"},
    {"evaluation.sets[].sources[].kind", "", To<&SourceRecipe::kind>, kRequired, "", kAny, kSourceKindChoices,
     kSourceKindHelp},
    {"evaluation.sets[].sources[].weight", "", To<&SourceRecipe::weight>, kOptional, "1", kShare, "",
     "share of the samples that are of this source, in proportion to the other weights; at most 6 digits after the "
     "point"},
    {"evaluation.sets[].sources[].shards", "webdataset", To<&SourceRecipe::shards>, kRequired, "", kAny, "",
     "tar files in order, absolute or relative to this file; {000..099} is a range, * any characters"},
    {"evaluation.sets[].sources[].ignore", "webdataset", To<&SourceRecipe::ignore>, kOptional, "", kAny, "",
     "extensions of members that are not read, such as json, without a dot; without it they are errors"},
    {"evaluation.sets[].sources[].path", "tokens", To<&SourceRecipe::path>, kRequired, "", kAny, "",
     "PATH of PATH.bin and PATH.idx, absolute or relative to this file"},
    {"evaluation.sets[].path", "", To<&EvaluationSetRecipe::path>, kOptional, "", kAny, "",
     "of data of kind recorded, which needs it: safetensors file of a batch"},
    {"evaluation.sets[].seed", "", To<&EvaluationSetRecipe::seed>, kOptional, "", kCountFromZero, "",
     "of mock data, which needs it: seed of the set's samples, another one than `data.seed`"},

    {"divergence", "", Section<&Recipe::divergence>, kOptional, "", kAny, "",
     "when a run stops because its loss grows; without it none does"},
    {"divergence.window", "", To<&DivergenceRecipe::window>, kOptional, "100", kWindow, "",
     "how many steps before a step its loss is compared with"},
    {"divergence.factor", "", To<&DivergenceRecipe::factor>, kRequired, "", kGrowth, "",
     "the run stops at a step whose loss is more than so many times the least one of its window"},
};

}  // namespace

std::span<const KeySpec> KeysOfEvaluation() { return kEvaluationKeys; }

}  // namespace planwright
