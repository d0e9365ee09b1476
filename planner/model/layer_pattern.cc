#include "planner/model/layer_pattern.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/plan/layer_kinds.h"
#include "planner/plan/limits.h"

namespace planwright {
namespace {

using Of = LayerKind::Of;

bool IsLayer(char letter) {
  const LayerKind* kind = FindLayerKind(letter);
  return kind && kind->of != Of::kEncoder;
}

// The place of byte `offset` of a value. Only right for a plain scalar on one line, which a pattern is; a quoted one
// starts one later.
Location At(const Located<std::string>& pattern, size_t offset) {
  Location where = pattern.where;
  if (!where.known()) return where;
  const bool quoted = where.length == static_cast<int>(pattern->size()) + 2;
  where.column += static_cast<int>(offset) + (quoted ? 1 : 0);
  where.length = 1;
  return where;
}

bool CheckCharacters(const Located<std::string>& pattern, Diagnostics& diagnostics) {
  bool fine = true;
  if (pattern->size() > kMostLayers + kMostStages) {
    diagnostics.Error(
        DiagnosticKind::kOutOfRange, pattern.where,
        absl::StrCat("a pattern of ", pattern->size(), " characters; a plan has at most ", kMostLayers, " layers"),
        "shorten it");
    return false;
  }
  for (size_t i = 0; i < pattern->size(); ++i) {
    const char c = (*pattern)[i];
    if (c == '|' || c == '/' || IsLayer(c)) continue;
    std::vector<std::string> known;
    for (const LayerKind& kind : LayerKinds()) {
      if (IsLayer(kind.letter)) known.push_back(absl::StrCat(std::string(1, kind.letter), " ", std::string(kind.word)));
    }
    diagnostics.Error(DiagnosticKind::kUnknownLayer, At(pattern, i),
                      absl::StrCat("layer '", std::string(1, c), "' is none that a pattern has"),
                      absl::StrCat("layers are ", absl::StrJoin(known, ", ")));
    fine = false;
  }
  return fine;
}

// `*` cannot stand beside another kind of attention within one part.
bool CheckAttentionKinds(std::string_view part, const Location& where, Diagnostics& diagnostics) {
  if (part.find('*') == std::string_view::npos || part.find_first_of("D+") == std::string_view::npos) return true;
  diagnostics.Error(DiagnosticKind::kPatternConflict, where,
                    "attention (*) and sparse or latent attention (D, +) in one part of the pattern",
                    "use one kind of attention");
  return false;
}

bool CheckMtp(const std::vector<std::string>& depths, const Location& where, Diagnostics& diagnostics) {
  for (const std::string& depth : depths) {
    if (depth != depths.front()) {
      diagnostics.Error(DiagnosticKind::kPatternConflict, where,
                        absl::StrCat("MTP depths differ: '", depths.front(), "' and '", depth, "'"),
                        "write the same layers after every '/'");
      return false;
    }
  }
  if (!depths.empty() && depths.front().find('|') != std::string::npos) {
    diagnostics.Error(DiagnosticKind::kPatternConflict, where, "a pipeline break '|' within an MTP part",
                      "break only the main part");
    return false;
  }
  return true;
}

std::optional<std::vector<LayerStage>> SplitBySegments(const LayerPattern& pattern, const StageSplit& split,
                                                       const Location& where, Diagnostics& diagnostics) {
  const int64_t runs = int64_t{split.pp} * split.virtual_stages;
  if (split.first_layers || split.last_layers || split.stage_layers) {
    diagnostics.Error(DiagnosticKind::kPatternSplit, where, "the pattern has '|' and layers of stages are given too",
                      "use one of the two");
    return std::nullopt;
  }
  if (static_cast<int64_t>(pattern.segments.size()) != runs) {
    diagnostics.Error(
        DiagnosticKind::kPatternSplit, where,
        absl::StrCat("the pattern has ", pattern.segments.size(), " segments and the pipeline ", runs,
                     runs == 1 ? " stage (pp " : " stages (pp ", split.pp,
                     split.virtual_stages > 1 ? absl::StrCat(" x ", split.virtual_stages, " virtual stages") : "", ")"),
        runs == 1 ? std::string("remove the '|', or use more stages: layers of other segments would be lost")
                  : absl::StrCat("use ", runs - 1, " '|'"));
    return std::nullopt;
  }
  std::vector<LayerStage> stages;
  int64_t first = 0;
  for (size_t i = 0; i < pattern.segments.size(); ++i) {
    const int stage = static_cast<int>(i);
    stages.push_back({stage % split.pp, stage / split.pp, pattern.segments[i], first});
    first += static_cast<int64_t>(pattern.segments[i].size());
  }
  return stages;
}

// Sizes of the stages of a pattern without `|`; empty when they do not add up.
std::vector<int64_t> StageSizes(int64_t layers, const StageSplit& split) {
  if (split.stage_layers) {
    const int64_t sum = std::accumulate(split.stage_layers->begin(), split.stage_layers->end(), int64_t{0});
    return sum == layers ? *split.stage_layers : std::vector<int64_t>();
  }
  if (split.first_layers.value_or(0) < 0 || split.last_layers.value_or(0) < 0) return {};
  int64_t middle = layers, stages = split.pp;
  for (const auto& size : {split.first_layers, split.last_layers}) {
    if (!size) continue;
    middle -= *size;
    --stages;
  }
  if (middle < 0 || stages < 0) return {};
  if (stages == 0 ? middle != 0 : middle % stages != 0) return {};
  std::vector<int64_t> sizes(stages, stages == 0 ? 0 : middle / stages);
  if (split.first_layers) sizes.insert(sizes.begin(), *split.first_layers);
  if (split.last_layers) sizes.push_back(*split.last_layers);
  return sizes;
}

}  // namespace

int64_t LayerPattern::count(char layer) const {
  return std::count(layers.begin(), layers.end(), layer) + mtp_depths * std::count(mtp.begin(), mtp.end(), layer);
}

std::optional<LayerPattern> ParseLayerPattern(const Located<std::string>& pattern, Diagnostics& diagnostics) {
  if (!CheckCharacters(pattern, diagnostics)) return std::nullopt;
  std::vector<std::string> parts = absl::StrSplit(*pattern, '/');
  const std::string main = parts.front();
  parts.erase(parts.begin());
  // "M*M*/" names no MTP layer: no MTP.
  if (std::all_of(parts.begin(), parts.end(), [](const std::string& part) { return part.empty(); })) parts.clear();

  LayerPattern result;
  result.segments = absl::StrSplit(main, '|');
  for (const std::string& segment : result.segments) result.layers += segment;
  if (!CheckMtp(parts, pattern.where, diagnostics)) return std::nullopt;
  if (!parts.empty()) result.mtp = parts.front();
  result.mtp_depths = static_cast<int>(parts.size());
  if (!CheckAttentionKinds(result.layers, pattern.where, diagnostics)) return std::nullopt;
  if (!CheckAttentionKinds(result.mtp, pattern.where, diagnostics)) return std::nullopt;
  return result;
}

std::optional<std::vector<LayerStage>> SplitIntoStages(const LayerPattern& pattern, const StageSplit& split,
                                                       const Location& where, Diagnostics& diagnostics) {
  if (pattern.segments.size() > 1) return SplitBySegments(pattern, split, where, diagnostics);
  if (split.virtual_stages > 1) {
    diagnostics.Error(DiagnosticKind::kPatternSplit, where, "virtual stages need '|' in the pattern",
                      "mark the segments with '|'");
    return std::nullopt;
  }
  const int64_t layers = static_cast<int64_t>(pattern.layers.size());
  const std::vector<int64_t> sizes = StageSizes(layers, split);
  if (static_cast<int>(sizes.size()) != split.pp) {
    diagnostics.Error(
        DiagnosticKind::kPatternSplit, where,
        absl::StrCat(layers, " layers cannot be dealt to ", split.pp, " pipeline stages",
                     split.first_layers ? absl::StrCat(", the first with ", *split.first_layers) : "",
                     split.last_layers ? absl::StrCat(", the last with ", *split.last_layers) : "",
                     split.stage_layers ? absl::StrCat(" as [", absl::StrJoin(*split.stage_layers, ", "), "]") : "",
                     ", without losing any"),
        "mark the segments with '|', or give stage_layers that add up");
    return std::nullopt;
  }
  std::vector<LayerStage> stages;
  int64_t first = 0;
  for (int rank = 0; rank < split.pp; ++rank) {
    stages.push_back({rank, 0, pattern.layers.substr(first, sizes[rank]), first});
    first += sizes[rank];
  }
  return stages;
}

}  // namespace planwright
