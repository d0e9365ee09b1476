#include "planner/bridges/route_bridges.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/bridges/check_tokens.h"
#include "planner/bridges/lint_lanes.h"
#include "planner/bridges/transfers.h"
#include "planner/diagnostics/bug.h"
#include "planner/plan/limits.h"
#include "planner/plan/number_runs.h"

namespace planwright {
namespace {

bool IsLanguage(const ModuleRecipe& module) { return std::holds_alternative<HybridLmModel>(module.model.model); }

int IndexOf(const Recipe& recipe, const std::string& name) {
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    if (*recipe.modules[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int FindModule(const Recipe& recipe, const Located<std::string>& name, Diagnostics& diagnostics) {
  if (const int index = IndexOf(recipe, *name); index >= 0) return index;
  auto just_name = [](std::string* out, const ModuleRecipe& module) { out->append(*module.name); };
  diagnostics.Error(DiagnosticKind::kUnknownBridgeModule, name.where, absl::StrCat("no module is named ", *name),
                    absl::StrCat("the modules are ", absl::StrJoin(recipe.modules, ", ", just_name)));
  return -1;
}

bool CheckDirection(const BridgeRecipe& bridge, const ModuleRecipe& from, const ModuleRecipe& to,
                    Diagnostics& diagnostics) {
  if (!IsLanguage(from) && IsLanguage(to)) return true;
  const bool reversed = IsLanguage(from) && !IsLanguage(to);
  diagnostics.Error(
      DiagnosticKind::kBridgeDirection, bridge.from.where.known() ? bridge.from.where : bridge.where,
      absl::StrCat("a bridge from ", *from.name, " (", *from.model.kind, ") to ", *to.name, " (", *to.model.kind, ")"),
      reversed ? absl::StrCat("write {from: ", *to.name, ", to: ", *from.name, "}")
               : "lead from an encoder to the language module");
  return false;
}

Bridge Route(const ModuleRecipe& from, const ModuleRecipe& to, const Grid& source, const Grid& destination,
             int64_t samples) {
  Bridge bridge = {.name = absl::StrCat("bridge.", *from.name, ".", *to.name),
                   .from = *from.name,
                   .to = *to.name,
                   .kind = BridgeKind(source, destination)};
  if (bridge.kind == "colocated") {
    bridge.forward = ColocatedTransfers(source, destination, samples);
    bridge.backward = ColocatedTransfers(destination, source, samples);
  } else {
    bridge.forward = LeaderTransfers(source, destination, samples);
    bridge.backward = Mirrored(bridge.forward);
  }
  return bridge;
}

// What a plan's file holds of a table.
int64_t CountRuns(const std::vector<Transfer>& transfers) {
  std::vector<NumberRow<4>> rows;
  rows.reserve(transfers.size());
  for (const Transfer& t : transfers) rows.push_back({t.from_rank, t.to_rank, t.first_sample, t.end_sample});
  return static_cast<int64_t>(RunsOf(rows).size());
}

bool CheckEncodersAreBridged(const Recipe& recipe, const std::set<int>& sources, Diagnostics& diagnostics) {
  bool fine = true;
  std::string language;
  for (const ModuleRecipe& module : recipe.modules) {
    if (IsLanguage(module)) language = *module.name;
  }
  if (language.empty()) return false;  // nowhere to lead to: reported with the modules
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    const ModuleRecipe& module = recipe.modules[i];
    if (IsLanguage(module) || sources.contains(static_cast<int>(i))) continue;
    diagnostics.Error(DiagnosticKind::kMissingBridge, module.name.where,
                      absl::StrCat("the output of encoder ", *module.name, " goes nowhere"),
                      absl::StrCat("add {from: ", *module.name, ", to: ", language, "} to bridges"));
    fine = false;
  }
  return fine;
}

}  // namespace

bool CheckBridges(const Recipe& recipe, Diagnostics& diagnostics) {
  std::set<std::pair<int, int>> joined;
  std::set<int> sources;
  bool fine = true;
  for (const BridgeRecipe& written : recipe.bridges) {
    const int from = FindModule(recipe, written.from, diagnostics), to = FindModule(recipe, written.to, diagnostics);
    if (from < 0 || to < 0 || !CheckDirection(written, recipe.modules[from], recipe.modules[to], diagnostics)) {
      fine = false;
      continue;
    }
    sources.insert(from);
    if (joined.insert({from, to}).second) continue;
    diagnostics.Error(DiagnosticKind::kRepeatedBridge, written.where,
                      absl::StrCat("a second bridge from ", *written.from, " to ", *written.to), "remove it");
    fine = false;
  }
  // A bridge that is wrong may be the one that an encoder lacks.
  return fine && CheckEncodersAreBridged(recipe, sources, diagnostics) && CheckBridgeTokens(recipe, diagnostics);
}

std::optional<std::vector<Bridge>> RouteBridges(const Recipe& recipe, const std::vector<Grid>& grids,
                                                Diagnostics& diagnostics) {
  Require(recipe.modules.size() == grids.size(), "one grid per module");
  if (!CheckBridges(recipe, diagnostics)) return std::nullopt;
  std::vector<Bridge> bridges;
  int64_t rows = 0, runs = 0;
  for (const BridgeRecipe& written : recipe.bridges) {
    const int from = IndexOf(recipe, *written.from), to = IndexOf(recipe, *written.to);
    const int64_t samples = grids[to].dp * *recipe.batch.micro_samples;
    bridges.push_back(Route(recipe.modules[from], recipe.modules[to], grids[from], grids[to], samples));
    bridges.back().token = TokenOf(written, recipe.data);
    rows += static_cast<int64_t>(bridges.back().forward.size() + bridges.back().backward.size());
    if (rows <= kMostTransfers) runs += CountRuns(bridges.back().forward) + CountRuns(bridges.back().backward);
    if (rows > kMostTransfers || runs > kMostTransferRuns) {
      diagnostics.Error(DiagnosticKind::kOutOfRange, written.where,
                        "the bridges up to this one have too many transfers to plan",
                        absl::StrCat("a plan has at most ", kMostTransfers, " of them, in ", kMostTransferRuns,
                                     " runs of equal steps: use fewer lanes, or lane counts that divide each other"));
      return std::nullopt;
    }
    LintLanes(recipe, recipe.modules[from], grids[from], grids[to].dp, diagnostics);
  }
  return bridges;
}

}  // namespace planwright
