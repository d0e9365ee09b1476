#include "planner/compile/model/block_names.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

using std::string;

// What is of one layer alone, as two layers would share it: "have WEIGHT", "are probed as VALUE".
std::vector<string> NamesOf(const StatedPiece& piece, const LayerPlace& place, const ModelNumbers& numbers) {
  std::vector<string> names;
  for (const StatedWeight& weight : piece.weights) {
    if (numbers.Hold(weight.when)) names.push_back(absl::StrCat("have ", NameAt(place, piece.prefix), weight.name));
  }
  for (const StatedProbe& probe : piece.probes) {
    if (numbers.Hold(probe.when)) names.push_back(absl::StrCat("are probed as ", NameAt(place, probe.name)));
  }
  return names;
}

string WithTitle(const StatedLayer& layer) { return absl::StrCat(string(1, layer.letter), " (", layer.title, ")"); }

// A tap is of what a whole block has made, and a block has one: so do others say where they are.
bool CheckTapPlaces(const ModelRecipe& model, const std::vector<LayerSummary>& layers, const string& opening,
                    Diagnostics& diagnostics) {
  const ModelStatement& statement = StatementOfModel(model);
  const char letter = statement.TapLetter();
  const auto opens = [&](size_t i) { return statement.FindLayer(layers[i].kind)->opens; };
  for (size_t i = 0; i < layers.size(); ++i) {
    if (letter == 0 || layers[i].kind != letter) continue;
    const bool begun = std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const LayerSummary& layer) { return statement.FindLayer(layer.kind)->opens; });
    string problem;
    if (!begun) {
      problem = "stands before the first block";
    } else if (i + 1 < layers.size() && layers[i + 1].kind == letter) {
      problem = "stands twice behind one block";
    } else if (i + 1 < layers.size() && !opens(i + 1)) {
      problem = absl::StrCat("stands within a block, before its ", WithTitle(*statement.FindLayer(layers[i + 1].kind)));
    }
    if (problem.empty()) continue;
    diagnostics.Error(DiagnosticKind::kPatternConflict, LocationOfLayer(model.pattern, i),
                      absl::StrCat(WithTitle(*statement.FindLayer(letter)), " ", problem),
                      absl::StrCat("write it behind a whole block, once; ", opening, " begins one"));
    return false;
  }
  return true;
}

}  // namespace

bool CheckBlockNames(const ModelRecipe& model, const LayerPattern& pattern, const ModelNumbers& numbers,
                     Diagnostics& diagnostics) {
  const ModelStatement& statement = StatementOfModel(model);
  std::vector<string> opening;
  for (const StatedLayer& kind : statement.layer_kinds) {
    if (kind.opens) opening.push_back(WithTitle(kind));
  }
  if (opening.empty()) return true;  // each layer is a block
  std::vector<LayerSummary> layers;
  for (char letter : pattern.layers) {
    if (statement.FindLayer(letter) == nullptr) return true;  // not built: refused by name
    layers.push_back({.kind = letter});
  }
  const std::vector<LayerPlace> places = PlacesOf(statement, layers);
  if (!CheckTapPlaces(model, layers, absl::StrJoin(opening, " or "), diagnostics)) return false;
  std::map<string, size_t> of_block;  // the layer that has the name
  for (size_t i = 0; i < layers.size(); ++i) {
    if (i > 0 && places[i].block != places[i - 1].block) of_block.clear();
    for (const string& name : NamesOf(statement.layers.at(layers[i].kind), places[i], numbers)) {
      const auto [first, added] = of_block.emplace(name, i);
      if (added) continue;
      const StatedLayer &one = *statement.FindLayer(layers[first->second].kind),
                        &other = *statement.FindLayer(layers[i].kind);
      diagnostics
          .Error(DiagnosticKind::kPatternConflict, LocationOfLayer(model.pattern, i),
                 absl::StrCat(WithTitle(other), " is in one block with ", WithTitle(one), ", and both ", name),
                 absl::StrCat("begin another block between them, with ", absl::StrJoin(opening, " or ")))
          .notes.push_back({LocationOfLayer(model.pattern, first->second), "the other layer is here"});
      return false;
    }
  }
  return true;
}

}  // namespace planwright
