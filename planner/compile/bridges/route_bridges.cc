#include "planner/compile/bridges/route_bridges.h"

#include <algorithm>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/compile/bridges/check_tokens.h"
#include "planner/compile/bridges/transfers.h"
#include "planner/plan/number_runs.h"
#include "planner/recipe/model_facts.h"
#include "planner/recipe/origins.h"

namespace planwright {
namespace {

bool IsLanguage(const ModuleRecipe& module) { return CarriesLoss(module.model); }

int IndexOf(const Recipe& recipe, const std::string& name) {
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    if (*recipe.modules[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// Index of the module; -1, and a problem, if there is none.
int FindModule(const Recipe& recipe, const char* key, const Located<std::string>& name, Diagnostics& diagnostics) {
  if (const int index = IndexOf(recipe, *name); index >= 0) return index;
  std::vector<std::string> names;
  for (const ModuleRecipe& module : recipe.modules) names.push_back(*module.name);
  const std::optional<std::string> near = NearName(*name, names);
  Diagnostic& problem = diagnostics.Error(DiagnosticKind::kUnknownBridgeModule, name.where,
                                          absl::StrCat("`", key, "` of a bridge: no module is named ", *name),
                                          near ? absl::StrCat("did you mean `", *near, "`?")
                                               : absl::StrCat("the modules are ", absl::StrJoin(names, ", ")));
  if (near) problem.edits = {{"", *near}}, problem.restates = true;
  return -1;
}

// Whether the statement is given a value of each encoder.
bool TakesImageRows(const ModelStatement& statement) {
  return std::any_of(statement.given.begin(), statement.given.end(), [](const auto& given) {
    const std::vector<StatedType::Size>& sizes = given.second.sizes;
    return std::any_of(sizes.begin(), sizes.end(), [](const StatedType::Size& size) {
      const std::string* symbol = std::get_if<std::string>(&size);
      return symbol != nullptr && symbol->ends_with('*');
    });
  });
}

// How many layers of the model take or give features beside the stream.
int64_t TapsOf(const ModelRecipe& model) {
  const char letter = StatementOfModel(model).TapLetter();
  const std::string layers = model.pattern->substr(0, model.pattern->find('/'));
  return letter == 0 ? 0 : std::count(layers.begin(), layers.end(), letter);
}

// A row of the bridge has the features of all inner layers that the encoder hands on. Only one encoder's rows may have
// such: behind blocks they are added to what the embedding made of text, where the token of the data alone makes
// nothing.
bool CheckTaps(const BridgeRecipe& bridge, const Recipe& recipe, const ModuleRecipe& from, const ModuleRecipe& to,
               Diagnostics& diagnostics) {
  if (!AllKnown(from.model.pattern, to.model.pattern)) return true;
  const int64_t made = TapsOf(from.model), taken = TapsOf(to.model);
  if (made != taken) {
    const auto times = [](int64_t count) {
      return count == 0 ? std::string("never") : count == 1 ? std::string("once") : absl::StrCat(count, " times");
    };
    const bool takes = StatementOfModel(to.model).TapLetter() != 0;
    diagnostics
        .Error(DiagnosticKind::kPatternConflict, to.model.pattern.where,
               absl::StrCat(*to.name, " takes features of inner layers ", times(taken), ", and ", *from.name,
                            " hands them on ", times(made)),
               takes ? "write as many D in both patterns"
                     : absl::StrCat("write no D in the pattern of ", *from.name, ": a ", *to.model.kind, " takes none"))
        .notes.push_back({from.model.pattern.where, absl::StrCat("the layers of ", *from.name, " are given here")});
    return false;
  }
  const auto leads_here = [&](const BridgeRecipe& other) { return AllKnown(other.to) && *other.to == *bridge.to; };
  const auto first = std::find_if(recipe.bridges.begin(), recipe.bridges.end(), leads_here);
  if (taken == 0 || std::count_if(first, recipe.bridges.end(), leads_here) == 1) return true;
  if (&*first != &bridge) return false;  // told of the first
  diagnostics.Error(
      DiagnosticKind::kPatternConflict, to.model.pattern.where,
      absl::StrCat("the layers of ", *to.name, " take features of inner layers, and several encoders feed the model"),
      "keep one bridge, or write no D in the patterns");
  return false;
}

// Features of inner layers come over a bridge.
bool CheckTapsAreBridged(const Recipe& recipe, Diagnostics& diagnostics) {
  if (!recipe.bridges.empty()) return true;  // CheckTaps
  bool fine = true;
  for (const ModuleRecipe& module : recipe.modules) {
    if (!AllKnown(module.model.kind, module.model.pattern) || !IsLanguage(module) || TapsOf(module.model) == 0)
      continue;
    diagnostics.Error(DiagnosticKind::kPatternConflict, module.model.pattern.where,
                      absl::StrCat("the layers of ", *module.name, " take features of inner layers of an encoder, and ",
                                   "no bridge brings any"),
                      "add an encoder with as many D in its pattern and a bridge, or write no D here");
    fine = false;
  }
  return fine;
}

// Bridges lead from an encoder to the language model.
bool CheckDirection(const BridgeRecipe& bridge, const ModuleRecipe& from, const ModuleRecipe& to,
                    Diagnostics& diagnostics) {
  if (!IsLanguage(from) && IsLanguage(to) && TakesImageRows(StatementOfModel(to.model))) return true;
  if (!IsLanguage(from) && IsLanguage(to)) {
    diagnostics.Error(DiagnosticKind::kBridgeDirection, bridge.to.where.known() ? bridge.to.where : bridge.where,
                      absl::StrCat("a bridge to ", *to.name, ", but a ", *to.model.kind, " takes no image rows"),
                      "train it without an encoder");
    return false;
  }
  const bool reversed = IsLanguage(from) && !IsLanguage(to);
  diagnostics.Error(
      DiagnosticKind::kBridgeDirection, bridge.from.where.known() ? bridge.from.where : bridge.where,
      absl::StrCat("a bridge from ", *from.name, " (", *from.model.kind, ") to ", *to.name, " (", *to.model.kind, ")"),
      reversed ? absl::StrCat("write {from: ", *to.name, ", to: ", *from.name, "}")
               : "lead from an encoder to the language module");
  return false;
}

// `samples`: of a microbatch, over all lanes.
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

// How many runs of equal steps the plan file writes for a list of transfers.
int64_t CountRuns(const std::vector<Transfer>& transfers) {
  std::vector<NumberRow<4>> rows;
  rows.reserve(transfers.size());
  for (const Transfer& t : transfers) rows.push_back({t.from_rank, t.to_rank, t.first_sample, t.end_sample});
  return static_cast<int64_t>(RunsOf(rows).size());
}

// Warns of encoder lanes that never have a sample, because a microbatch (micro_samples for each of `language_lanes`)
// has fewer samples than the encoder has lanes. The first lanes are dealt the samples, the last ones stay idle.
void LintLanes(const Recipe& recipe, const ModuleRecipe& encoder, const Grid& source, const ModuleRecipe& language,
               int language_lanes, Diagnostics& diagnostics) {
  const Located<int64_t>& micro = recipe.batch.micro_samples;
  const int64_t samples = *micro * language_lanes, idle = source.dp - samples,
                ranks = samples * source.tp * source.cp * source.pp;
  if (idle <= 0) return;
  Diagnostic& warning = diagnostics.Warning(
      DiagnosticKind::kIdleLanes, encoder.ranks.where.known() ? encoder.ranks.where : encoder.name.where,
      absl::StrCat(idle, " of the ", source.dp, " lanes of encoder ", *encoder.name,
                   idle == 1 ? " never has" : " never have", " a sample: a microbatch is micro_samples ", *micro,
                   " x language dp ", language_lanes, " = ", samples),
      absl::StrCat("give the encoder ", ranks, ranks == 1 ? " rank" : " ranks",
                   ", or use micro_samples: ", (source.dp + language_lanes - 1) / language_lanes));
  if (micro.where.known()) warning.notes.push_back({micro.where, absl::StrCat("micro_samples is ", *micro, " here")});
  // Fewer lanes of the encoder, or more of the language model.
  for (const ModuleRecipe* module : {&encoder, &language}) {
    if (module->tp.where.known())
      warning.notes.push_back({module->tp.where, absl::StrCat("tp of ", *module->name, " is ", *module->tp, " here")});
  }
}

// Every encoder needs a bridge: without one its output has no reader and it gets no gradient.
bool CheckEncodersAreBridged(const Recipe& recipe, const std::set<int>& sources, Diagnostics& diagnostics) {
  bool fine = true;
  const ModuleRecipe* language = LanguageOf(recipe);
  if (language == nullptr) return false;  // reported with the modules
  for (size_t i = 0; i < recipe.modules.size(); ++i) {
    const ModuleRecipe& module = recipe.modules[i];
    if (!AllKnown(module.model.kind) || IsLanguage(module) || sources.contains(static_cast<int>(i))) continue;
    const std::string bridge = absl::StrCat("{from: ", *module.name, ", to: ", *language->name, "}");
    Diagnostic& problem =
        diagnostics.Error(DiagnosticKind::kMissingBridge, module.name.where,
                          absl::StrCat("encoder ", *module.name, " has no bridge, so nothing reads its output"),
                          absl::StrCat("add ", bridge, " to bridges"));
    if (recipe.bridges.empty()) problem.edits = {{"bridges", absl::StrCat("[", bridge, "]")}}, problem.restates = true;
    fine = false;
  }
  return fine;
}

}  // namespace

bool CheckBridges(const Recipe& recipe, Diagnostics& diagnostics) {
  // Bridges join modules: without the names of these nothing is known of them.
  if (recipe.damaged.contains("modules")) return false;
  std::set<std::pair<int, int>> joined;
  std::set<int> sources;
  bool fine = !recipe.damaged.contains("bridges");
  for (const BridgeRecipe& written : recipe.bridges) {
    const int from = AllKnown(written.from) ? FindModule(recipe, "from", written.from, diagnostics) : -1,
              to = AllKnown(written.to) ? FindModule(recipe, "to", written.to, diagnostics) : -1;
    if (from >= 0 && to >= 0 && !AllKnown(recipe.modules[from].model.kind, recipe.modules[to].model.kind)) {
      fine = false;
      continue;
    }
    if (from < 0 || to < 0 || !CheckDirection(written, recipe.modules[from], recipe.modules[to], diagnostics)) {
      fine = false;
      continue;
    }
    sources.insert(from);
    fine = CheckTaps(written, recipe, recipe.modules[from], recipe.modules[to], diagnostics) && fine;
    if (joined.insert({from, to}).second) continue;
    diagnostics
        .Error(DiagnosticKind::kRepeatedBridge, written.where,
               absl::StrCat("a second bridge from ", *written.from, " to ", *written.to), "remove it")
        .edits = {{"", ""}};
    fine = false;
  }
  // A wrong bridge may be meant for an encoder that has none, so a missing bridge is reported only without wrong ones.
  fine = fine && CheckEncodersAreBridged(recipe, sources, diagnostics) && CheckTapsAreBridged(recipe, diagnostics);
  // Of several bridges each needs a token, so that a wrong one would be told twice.
  if (!fine && recipe.bridges.size() > 1) return false;
  return CheckBridgeTokens(recipe, diagnostics) && fine;
}

std::optional<std::vector<Bridge>> RouteBridges(const Recipe& recipe, const std::vector<Grid>& grids,
                                                Diagnostics& diagnostics) {
  Require(recipe.modules.size() == grids.size(), "one grid per module");
  if (!CheckBridges(recipe, diagnostics) || !AllKnown(recipe.batch.micro_samples)) return std::nullopt;
  std::vector<Bridge> bridges;
  int64_t transfers = 0, runs = 0;
  for (size_t i = 0; i < recipe.bridges.size(); ++i) {
    const BridgeRecipe& written = recipe.bridges[i];
    const int from = IndexOf(recipe, *written.from), to = IndexOf(recipe, *written.to);
    const int64_t samples = grids[to].dp * *recipe.batch.micro_samples;
    Bridge& bridge =
        bridges.emplace_back(Route(recipe.modules[from], recipe.modules[to], grids[from], grids[to], samples));
    bridge.token = TokenOf(written, recipe.data);
    if (written.max_mean_square) bridge.max_mean_square = **written.max_mean_square;
    bridge.origin = OriginOfBridge(recipe, i);
    // A plan file writes transfers as runs of equal steps, so both their number and that of the runs are limited.
    transfers += static_cast<int64_t>(bridge.forward.size() + bridge.backward.size());
    if (transfers <= kMostTransfers) runs += CountRuns(bridge.forward) + CountRuns(bridge.backward);
    if (transfers > kMostTransfers || runs > kMostTransferRuns) {
      diagnostics.Error(DiagnosticKind::kOutOfRange, written.where,
                        "the bridges up to this one have too many transfers to plan",
                        absl::StrCat("a plan has at most ", kMostTransfers, " of them, in ", kMostTransferRuns,
                                     " runs of equal steps: use fewer lanes, or lane counts that divide each other"));
      return std::nullopt;
    }
    LintLanes(recipe, recipe.modules[from], grids[from], recipe.modules[to], grids[to].dp, diagnostics);
  }
  return bridges;
}

}  // namespace planwright
