// The layer pattern of a language model: one letter for each layer, `|` between pipeline stages, `/` before each part
// for multi-token prediction (MTP). Grammar: docs/model/language_model.md#layer-pattern.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/base/text/location.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/recipe.h"

namespace planwright {

struct LayerPattern {
  std::string layers;                 // of the main part, without `|`
  std::vector<std::string> segments;  // of the main part, split at `|`; a segment may be empty
  std::string mtp;                    // the layers of one MTP part; empty: no MTP
  int mtp_depths = 0;                 // number of MTP parts

  bool has(char layer) const { return layers.find(layer) != std::string::npos; }
  // The number of layers of this kind in the whole model, including all MTP parts.
  int64_t count(char layer) const;
};

// Checks the grammar and splits the pattern into its parts. Nothing, with problems PW0501 or PW0502, if it is wrong.
// `statement`: whose layers it may have, besides those that are not built.
std::optional<LayerPattern> ParseLayerPattern(const Located<std::string>& pattern, const ModelStatement& statement,
                                              Diagnostics& diagnostics);

// Where a layer of the pattern stands, by its number, from 0; the whole pattern for a layer that it does not have.
Location LocationOfLayer(const Located<std::string>& pattern, size_t layer);

// The pattern of a model, parsed.
std::optional<LayerPattern> PatternOfLayers(const ModelRecipe& model, Diagnostics& diagnostics);

}  // namespace planwright
