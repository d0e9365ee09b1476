#include "planner/compile/model/layer_pattern.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/limits.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

using Of = LayerKind::Of;

// Letters of layer kinds that are not built yet are part of the grammar too: topology refuses them with PW0900.
bool IsLayer(char letter, Of of) {
  const LayerKind* kind = FindLayerKind(letter);
  return kind && (kind->of == of || kind->of == Of::kUnbuilt);
}

// The location of byte `offset` of the pattern. A pattern is on one line without escapes; if it is in quotes, its text
// starts one column later.
Location LocationInPattern(const Located<std::string>& pattern, size_t offset) {
  Location where = pattern.where;
  if (!where.known()) return where;
  const bool quoted = where.length == static_cast<int>(pattern->size()) + 2;
  where.column += static_cast<int>(offset) + (quoted ? 1 : 0);
  where.length = 1;
  return where;
}

// Reports every wrong character, at its own location.
bool CheckCharacters(const Located<std::string>& pattern, Of of, Diagnostics& diagnostics) {
  bool fine = true;
  if (pattern->size() > kMostLayers + kMostStages) {
    diagnostics.Error(DiagnosticKind::kOutOfRange, pattern.where,
                      absl::StrCat("the pattern has ", pattern->size(), " characters, but a plan has at most ",
                                   kMostLayers, " layers"),
                      "use a shorter pattern");
    return false;
  }
  for (size_t i = 0; i < pattern->size(); ++i) {
    const char c = (*pattern)[i];
    if (c == '|' || c == '/' || IsLayer(c, of)) continue;
    std::vector<std::string> known;
    for (const LayerKind& kind : LayerKinds()) {
      if (IsLayer(kind.letter, of))
        known.push_back(absl::StrCat(std::string(1, kind.letter), " ", std::string(kind.word)));
    }
    diagnostics.Error(DiagnosticKind::kUnknownLayer, LocationInPattern(pattern, i),
                      absl::StrCat("'", std::string(1, c), "' is not a layer kind"),
                      absl::StrCat("layer kinds are ", absl::StrJoin(known, ", ")));
    fine = false;
  }
  return fine;
}

// One part cannot mix `*` with another kind of attention.
bool CheckAttentionKinds(std::string_view part, const Location& where, Diagnostics& diagnostics) {
  if (part.find('*') == std::string_view::npos || part.find_first_of("D+") == std::string_view::npos) return true;
  diagnostics.Error(DiagnosticKind::kPatternConflict, where,
                    "the pattern mixes attention (*) with sparse or latent attention (D, +)",
                    "use one kind of attention");
  return false;
}

// All MTP parts must have the same layers, because one part describes the layers of every depth.
bool CheckMtp(const std::vector<std::string>& depths, const Location& where, Diagnostics& diagnostics) {
  for (const std::string& depth : depths) {
    if (depth != depths.front()) {
      diagnostics.Error(DiagnosticKind::kPatternConflict, where,
                        absl::StrCat("the multi-token-prediction parts of the pattern differ: '", depths.front(),
                                     "' and '", depth, "'"),
                        "write the same layers after every '/'");
      return false;
    }
  }
  if (!depths.empty() && depths.front().find('|') != std::string::npos) {
    diagnostics.Error(DiagnosticKind::kPatternConflict, where,
                      "a multi-token-prediction part of the pattern contains '|'", "use '|' only before the first '/'");
    return false;
  }
  return true;
}

}  // namespace

int64_t LayerPattern::count(char layer) const {
  return std::count(layers.begin(), layers.end(), layer) + mtp_depths * std::count(mtp.begin(), mtp.end(), layer);
}

std::optional<LayerPattern> ParseLayerPattern(const Located<std::string>& pattern, Diagnostics& diagnostics, Of of) {
  if (!CheckCharacters(pattern, of, diagnostics)) return std::nullopt;
  std::vector<std::string> parts = absl::StrSplit(*pattern, '/');
  const std::string main = parts.front();
  parts.erase(parts.begin());
  // All MTP parts are empty ("M*M*/"): no MTP.
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

std::optional<LayerPattern> PatternOfLayers(const ModelRecipe& model, Diagnostics& diagnostics) {
  return ParseLayerPattern(PatternOf(model), diagnostics, CarriesLoss(model) ? Of::kLanguage : Of::kEncoder);
}

}  // namespace planwright
