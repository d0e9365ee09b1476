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

// The location of byte `offset` of the pattern. A pattern is on one line without escapes; if it is in quotes, its text
// starts one column later. A number of layers stands as a whole for all of them.
Location LocationInPattern(const Located<std::string>& pattern, size_t offset) {
  Location where = pattern.where;
  const auto length = static_cast<int>(pattern->size());
  const bool quoted = where.length == length + 2;
  if (!where.known() || (!quoted && where.length != length)) return where;
  where.column += static_cast<int>(offset) + (quoted ? 1 : 0);
  where.length = 1;
  return where;
}

// Letters of layers that are not built are part of the grammar too: topology refuses them with PW0900.
std::vector<const StatedLayer*> KnownLayers(const ModelStatement& statement) {
  std::vector<const StatedLayer*> layers;
  for (const auto* its : {&statement.layer_kinds, &statement.unbuilt}) {
    for (const StatedLayer& layer : *its) layers.push_back(&layer);
  }
  return layers;
}

// Reports every wrong character, at its own location.
bool CheckCharacters(const Located<std::string>& pattern, const ModelStatement& statement, Diagnostics& diagnostics) {
  const std::vector<const StatedLayer*> layers = KnownLayers(statement);
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
    const auto has_it = [&](const StatedLayer* layer) { return layer->letter == c; };
    if (c == '|' || c == '/' || std::any_of(layers.begin(), layers.end(), has_it)) continue;
    std::vector<std::string> known;
    for (const StatedLayer* layer : layers)
      known.push_back(
          absl::StrCat(std::string(1, layer->letter), " ", layer->word.empty() ? layer->title : layer->word));
    diagnostics.Error(DiagnosticKind::kUnknownLayer, LocationInPattern(pattern, i),
                      absl::StrCat("'", std::string(1, c), "' is not a layer kind"),
                      absl::StrCat("layer kinds are ", absl::StrJoin(known, ", ")));
    fine = false;
  }
  return fine;
}

// Titles of layers as one phrase: "sparse or latent attention".
std::string JoinedTitles(const std::vector<const StatedLayer*>& layers) {
  const std::string& last = layers.back()->title;
  const std::string end = last.substr(std::min(last.size(), last.rfind(' ')));  // " attention"
  std::vector<std::string> titles;
  for (const StatedLayer* layer : layers) {
    const bool shares = layer != layers.back() && layer->title.size() > end.size() && layer->title.ends_with(end);
    titles.push_back(shares ? layer->title.substr(0, layer->title.size() - end.size()) : layer->title);
  }
  return absl::StrJoin(titles, " or ");
}

// One part cannot mix layers with those that they are not built to be beside.
bool CheckMixture(std::string_view part, const Location& where, const ModelStatement& statement,
                  Diagnostics& diagnostics) {
  for (const StatedLayer& layer : statement.layer_kinds) {
    if (part.find(layer.letter) == std::string_view::npos) continue;
    std::vector<const StatedLayer*> others;
    std::vector<std::string> letters;
    for (const StatedLayer& other : statement.unbuilt) {
      if (other.not_with.find(layer.letter) == std::string::npos) continue;
      others.push_back(&other);
      letters.emplace_back(1, other.letter);
    }
    if (part.find_first_of(absl::StrJoin(letters, "")) == std::string_view::npos) continue;
    diagnostics.Error(DiagnosticKind::kPatternConflict, where,
                      absl::StrCat("the pattern mixes ", layer.title, " (", std::string(1, layer.letter), ") with ",
                                   JoinedTitles(others), " (", absl::StrJoin(letters, ", "), ")"),
                      absl::StrCat("use one kind of ", layer.title));
    return false;
  }
  return true;
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

Location LocationOfLayer(const Located<std::string>& pattern, size_t layer) {
  for (size_t i = 0; i < pattern->size() && (*pattern)[i] != '/'; ++i) {
    if ((*pattern)[i] != '|' && layer-- == 0) return LocationInPattern(pattern, i);
  }
  return pattern.where;
}

int64_t LayerPattern::count(char layer) const {
  return std::count(layers.begin(), layers.end(), layer) + mtp_depths * std::count(mtp.begin(), mtp.end(), layer);
}

std::optional<LayerPattern> ParseLayerPattern(const Located<std::string>& pattern, const ModelStatement& statement,
                                              Diagnostics& diagnostics) {
  if (!CheckCharacters(pattern, statement, diagnostics)) return std::nullopt;
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
  if (!CheckMixture(result.layers, pattern.where, statement, diagnostics)) return std::nullopt;
  if (!CheckMixture(result.mtp, pattern.where, statement, diagnostics)) return std::nullopt;
  return result;
}

std::optional<LayerPattern> PatternOfLayers(const ModelRecipe& model, Diagnostics& diagnostics) {
  return ParseLayerPattern(model.pattern, StatementOfModel(model), diagnostics);
}

}  // namespace planwright
