// The parts of the table of keys (recipe_keys.h), a file for each group of sections, and the ranges that they share.
#pragma once

#include <cstdint>
#include <span>

#include "planner/base/text/limits.h"
#include "planner/recipe/recipe_keys.h"

namespace planwright {

// The ranges that keys of several files have. Those that keys of one file have are there.
inline constexpr NumberRange kAny = kAnyNumber;  // of keys that are no numbers
inline constexpr NumberRange kCountFromZero{0, static_cast<double>(kLargestNumber)};
inline constexpr NumberRange kSteps{1, static_cast<double>(kMostSamples)};
// Of weights of sources: millionths of it fit 64 bits (compile/batches/source_weights.cc).
inline constexpr NumberRange kShare{1e-6, 1e11};
// The choices of `data.kind` and of `kind` of a source, as KeySpec::choices has them, and the help that says what each
// of them is. Each row of the table adds one, behind a separator, of which the first is cut off.
inline constexpr std::string_view kDataKindChoices = std::string_view(
#define DATA_KIND(id, word, meaning, ...) "|" word
#include "planner/plan/data_kinds.def"
                                                         )
                                                         .substr(1);
inline constexpr std::string_view kDataKindHelp = std::string_view(
#define DATA_KIND(id, word, meaning, ...) "; " word ": " meaning
#include "planner/plan/data_kinds.def"
                                                      )
                                                      .substr(2);
inline constexpr std::string_view kSourceKindChoices = std::string_view(
#define SOURCE_KIND(id, word, meaning, ...) "|" word
#include "planner/plan/data_kinds.def"
                                                           )
                                                           .substr(1);
inline constexpr std::string_view kSourceKindHelp = std::string_view(
#define SOURCE_KIND(id, word, meaning, ...) "; " word ": " meaning
#include "planner/plan/data_kinds.def"
                                                        )
                                                        .substr(2);

// A larger size is a typing mistake, and the product of a few such sizes would exceed 64 bits.
inline constexpr NumberRange kSize{1, 16777216};

// path, kind, field, need, default, range, choices, help. Sections are in the order of the reference page, and so are
// the parts. The help of a key is a noun phrase: it follows "add `key`: " in messages.
std::span<const KeySpec> KeysOfModels();      // name, extends, cluster, models, modules, bridges
std::span<const KeySpec> KeysOfKinds();       // models.<name>.*, of the statements of models
std::span<const KeySpec> KeysOfTraining();    // batch, budget, optimizer, gradients, precision
std::span<const KeySpec> KeysOfData();        // data, initialize
std::span<const KeySpec> KeysOfEvaluation();  // evaluation, divergence
std::span<const KeySpec> KeysOfRun();         // checkpoint, log, lints, launch

// The choices of `recompute`: words of its own, and those of the layers of all kinds of models.
std::string_view WordsOfRecompute();

}  // namespace planwright
