// PW01xx: keys of a recipe and their values.
#include "planner/diagnostics/explanations/explanations.h"

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

    {kBadName,
     "Names of modules and models become parts of parameter names, group names and file names. A name has at most 64 "
     "letters, digits and `_`, and does not start with a digit.",
     R"(models:
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
     R"(models:
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
data: {kind: webdataset, shards: [a.tar], min_patches: 512, max_patches: 256})",
     R"(cluster: {gpu: none}
data: {kind: webdataset, shards: [a.tar], min_patches: 4, max_patches: 256})",
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
