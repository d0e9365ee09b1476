#include "planner/diagnostics/explanations/rooms.h"

namespace planwright {
namespace {

using enum DiagnosticKind;

constexpr Explanation kExplanations[] = {
    {kUnknownKey,
     "No part of a recipe has this key. A key that nobody reads would be a setting without effect, so it is never "
     "passed over. The rest "
     "of the recipe is looked at as if the key were spelled right.",
     "batch: {global_sample: 16}", "batch: {global_samples: 16}",
     "Take the spelling that the help offers. `plan explain batch` lists the keys of a section, "
     "docs/recipe_reference.md all of them."},

    {kMissingKey,
     "A key without which the recipe cannot be compiled is given in none of its files. The place shown is that of the "
     "map where it "
     "belongs.",
     R"(bridges:
  - {from: radio_encoder})",
     R"(bridges:
  - {from: radio_encoder, to: language})",
     "Add the key. Remember that a list replaces the list below it whole: its items are not merged."},

    {kRepeatedKey, "A key is given twice in one map. YAML readers differ in which one they take.",
     "log: {every_steps: 1, every_steps: 10}", "log: {every_steps: 10}",
     "Remove one. To change what another file says, `extends` it and give the key once."},

    {kWrongType,
     "A value is of another type than its key: text for a number, a list for a map, 1e6 or 010 for an integer. What "
     "stands in quotes is "
     "text.",
     R"(batch: {sequence_length: "8192"})", "batch: {sequence_length: 8192}",
     "Write integers in plain decimal, truth as true or false, and text that looks like a number in quotes."},

    {kOutOfRange, "A number lies outside what makes sense for its key, whatever the rest of the recipe says.",
     R"(modules:
  language: {parallel: {tp: 0}})",
     R"(modules:
  language: {parallel: {tp: 2}})",
     "Choose a number in the range of the message; docs/recipe_reference.md has the range of every key."},

    {kUnknownChoice, "A word is none of those that the key can be.", "precision: {params: fp16}",
     "precision: {params: bf16}", "Take one of the words of the help."},

    {kBadName,
     "Names of modules and models become parts of the names of parameters, groups and files: up to 64 letters, digits "
     "and `_`, not "
     "starting with a digit.",
     R"(models:
  small-vit: {kind: radio_vit, layers: 2, hidden: 32, heads: 4, ffn: 64, patch: 4, class_tokens: 2, max_image: 64, projector: {hidden: 64}})",
     R"(models:
  small_vit: {kind: radio_vit, layers: 2, hidden: 32, heads: 4, ffn: 64, patch: 4, class_tokens: 2, max_image: 64, projector: {hidden: 64}})",
     "Replace other characters by `_`, here and where the name is used."},

    {kUnknownReference, "A module names a model that the recipe does not have.",
     R"(modules:
  language: {model: nemotron_hybrid_moe_21l})",
     R"(modules:
  language: {model: nemotron_hybrid_moe_20l})",
     "Correct the name, or `extends` the file that describes the model."},

    {kConflictingKeys, "Two keys, each right by itself, contradict each other.",
     R"(cluster: {gpu: none}
data: {kind: webdataset, shards: [a.tar], min_patches: 512, max_patches: 256})",
     R"(cluster: {gpu: none}
data: {kind: webdataset, shards: [a.tar], min_patches: 4, max_patches: 256})",
     "Change one of them as the help says."},

    {kNotALint,
     "`lints` changes warnings by their numbers. Errors cannot be changed, and a number that does not exist is a slip "
     "that would leave "
     "the warning as it was.",
     "lints: {PW0203: off}", "lints: {PW0409: off}",
     "Copy the number from the warning. `plan explain` lists the kinds and says which are lints."},
};

}  // namespace

std::span<const Explanation> RecipeExplanations() { return kExplanations; }

}  // namespace planwright
