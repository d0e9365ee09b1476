// PW01xx: keys of a recipe and their values.
#include "planner/recipe/diagnostics/explanations/explanations.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kRecipeExplanations[] = {
    {kUnknownKey,
     "Recipes have no key of this name. An unknown key is never ignored, because its author would expect an effect. "
     "The rest of the recipe is checked as if the key were spelled as in the help, or as if it were absent.",
     "batch: {global_sample: 16}", "batch: {global_samples: 16}",
     "Use the spelling of the help. `plan explain batch` lists the keys of a section, docs/recipe_reference.md all "
     "keys."},

    {kMissingKey,
     "A required key is given in none of the recipe's files. The message points at the map in which the key belongs.",
     R"(bridges:
  - {from: radio_encoder})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Add the key. Note that a list replaces the list of an extended file: their items are not merged."},

    {kRepeatedKey, "A map contains the same key twice. YAML parsers disagree about which of the two values counts.",
     "log: {every_steps: 1, every_steps: 10}", "log: {every_steps: 10}",
     "Remove one of them. To change a value of another file, extend that file and give the key once."},

    {kWrongType,
     "A value has another type than its key: text instead of a number, a list instead of a map, 1e6 or 010 instead of "
     "an integer. A value in quotes is always text.",
     R"(batch: {sequence_length: "8192"})", "batch: {sequence_length: 8192}",
     "Write integers as plain decimal digits and booleans as true or false. Put text that looks like a number in "
     "quotes."},

    {kOutOfRange,
     "A number is outside the range of its key, or makes the plan larger than the limits in docs/limits.md.",
     R"(modules:
  language: {parallel: {tp: 0}})",
     R"(modules:
  language: {parallel: {tp: 2}})",
     "Use a number in the range of the message. docs/recipe_reference.md has the range of every key."},

    {kUnknownChoice, "The key accepts only certain words, and the value is not one of them.",
     "precision: {params: fp16}", "precision: {params: bf16}", "Use one of the words in the message."},

    {kImplausibleValue,
     "The value is allowed, but published trainings stay far from it: a learning rate of 3, decay rates of moments in "
     "the wrong order, a warmup that is shorter than ten steps of a long training, as if it were counted in steps.",
     "budget: {learning_rate: {peak: 3}}", "budget: {learning_rate: {peak: 3.0e-4}}",
     "Correct the value. If it is meant, silence the lint."},

    {kKeyWithoutEffect,
     "The recipe has keys that change nothing: sizes of images without an encoder, or what becomes of damaged "
     "documents "
     "where no source has documents that can be damaged. Keys of files that it extends are not told.",
     R"(extends: [nemotron_moe_lm_tiny.yaml]
data: {image_grids: [[4, 4]]})",
     R"(extends: [nemotron_moe_lm_tiny.yaml]
data: {text_tokens: 8})",
     "Remove the keys, or add what they are for."},

    {kUnusedModel,
     "The recipe defines a model that none of its modules names, so that nothing is trained of it. Models of files "
     "that it extends are not told: they are libraries.",
     R"(models:
  small:
    kind: hybrid_lm
    pattern: "*"
    hidden: 64
    vocabulary: 512
    attention: {heads: 4, head_dim: 16, kv_groups: 2})",
     "models: {}", "Remove the model, or name it in a module."},

    {kBadName,
     "Names of modules and models become parts of parameter names, group names and file names. A name has at most 64 "
     "letters, digits and `_`, and does not start with a digit.",
     R"(lints: {PW0113: off}   # no module uses it
models:
  small-vit:
    kind: radio_vit
    layers: 2
    hidden: 32
    heads: 4
    ffn: 64
    patch: 4
    class_tokens: 2
    max_image: 64
    projector: {hidden: 64})",
     R"(lints: {PW0113: off}   # no module uses it
models:
  small_vit:
    kind: radio_vit
    layers: 2
    hidden: 32
    heads: 4
    ffn: 64
    patch: 4
    class_tokens: 2
    max_image: 64
    projector: {hidden: 64})",
     "Replace other characters by `_`, in the definition and wherever the name is used."},

    {kUnknownReference, "A module names a model that the recipe does not define.",
     R"(modules:
  language: {model: nemotron_hybrid_moe_21l})",
     R"(modules:
  language: {model: nemotron_hybrid_moe_20l})",
     "Correct the name, or extend the file that defines the model."},

    {kConflictingKeys, "Two keys contradict each other, although each value is valid by itself.",
     R"(cluster: {gpu: none}
data: {kind: sources, sources: [{kind: webdataset, shards: /data/captions.tar}], min_patches: 512, max_patches: 256}
lints: {PW0613: off})",
     R"(cluster: {gpu: none}
data: {kind: sources, sources: [{kind: webdataset, shards: /data/captions.tar}], min_patches: 4, max_patches: 256}
lints: {PW0613: off})",
     "Change one of the two as the help says."},

    {kNotALint,
     "`lints` sets the level of lints by their numbers. Errors have no level. A number that does not exist is probably "
     "a typing mistake, and the lint that was meant would keep its level.",
     "lints: {PW0203: off}", "lints: {PW0409: off}",
     "Copy the number from the warning. `plan explain` lists all diagnostics and marks the lints."},
};

}  // namespace

std::span<const Explanation> RecipeExplanations() { return kRecipeExplanations; }

}  // namespace planwright
