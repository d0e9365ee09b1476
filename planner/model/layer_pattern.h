// The layer pattern of a hybrid language model: one character a layer, `|` between pipeline segments, `/` before each
// multi-token-prediction (MTP) depth. Grammar: facts 3.2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/diagnostics/diagnostic.h"
#include "planner/diagnostics/location.h"

namespace planwright {

struct LayerPattern {
  std::string layers;                 // of the main part, without `|`
  std::vector<std::string> segments;  // of the main part, between the `|`; one when there is none; may be empty strings
  std::string mtp;                    // layers of one MTP depth; empty: no MTP
  int mtp_depths = 0;

  bool has(char layer) const { return layers.find(layer) != std::string::npos; }
  // Layers of this kind over the whole model, MTP layers once a depth.
  int64_t count(char layer) const;
};

// Checks the grammar. Nothing, and located problems (PW0501, PW0502), when it is broken.
std::optional<LayerPattern> ParseLayerPattern(const Located<std::string>& pattern, Diagnostics& diagnostics);

// A run of layers on one pipeline rank; `virtual_stage` counts the runs of that rank.
struct LayerStage {
  int pp_rank = 0, virtual_stage = 0;
  std::string layers;
  int64_t first_layer = 0;
};

struct StageSplit {
  int pp = 1;
  int virtual_stages = 1;                            // runs of a rank; more than one needs `|`
  std::optional<int64_t> first_layers, last_layers;  // of the first and last stage; only without `|`
  std::optional<std::vector<int64_t>> stage_layers;  // of every stage; only without `|` and without the two
};

// Deals the main part's layers to pipeline ranks, ordered by virtual stage, then rank. Every layer is on exactly one
// stage: where the reference would drop layers (segments left over, a first and a last size that miss the middle) this
// is an error (PW0503).
std::optional<std::vector<LayerStage>> SplitIntoStages(const LayerPattern& pattern, const StageSplit& split,
                                                       const Location& where, Diagnostics& diagnostics);

}  // namespace planwright
