#include "planner/compile/topology/check_modules.h"

#include <algorithm>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

bool SameRanks(const ModuleRecipe& a, const ModuleRecipe& b) {
  return *a.first_rank == *b.first_rank && *a.ranks == *b.ranks;
}

bool Disjoint(const ModuleRecipe& a, const ModuleRecipe& b) {
  return EndOf(a) <= *b.first_rank || EndOf(b) <= *a.first_rank;
}

bool MustBeOne(const Located<int64_t>& size, const char* axis, const ModuleRecipe& module, Diagnostics& diagnostics) {
  if (!AllKnown(size) || *size <= 1) return true;
  diagnostics.Error(DiagnosticKind::kNoExperts, size.where.known() ? size.where : module.name.where,
                    absl::StrCat(axis, " ", *size, " on module ", *module.name, ", which has no experts"),
                    absl::StrCat("leave ", axis, " out"));
  return false;
}

// Colocated modules take turns in each microbatch, so there is no pipeline to fill; and rows are exchanged only between
// layouts of tp and dp (docs/layouts/bridges.md#colocated).
bool CheckColocated(const ModuleRecipe& module, const ModuleRecipe& other, Diagnostics& diagnostics) {
  bool fine = true;
  for (const auto& [size, axis] : {std::pair(&module.pp, "pp"), std::pair(&module.cp, "cp")}) {
    if (!AllKnown(*size) || **size <= 1) continue;
    Diagnostic& problem =
        diagnostics.Error(DiagnosticKind::kColocatedLayout, size->where.known() ? size->where : PlacementOf(module),
                          absl::StrCat(axis, " ", **size, " on module ", *module.name,
                                       ", which shares its ranks with module ", *other.name),
                          absl::StrCat("use ", axis, ": 1, or place the modules on ranks of their own"));
    problem.notes.push_back({PlacementOf(other), absl::StrCat("module ", *other.name, " is placed here")});
    fine = false;
  }
  return fine;
}

// Two modules are disjoint or colocated. Ranks that only partly overlap would belong to two pipelines.
bool CheckPair(const ModuleRecipe& a, const ModuleRecipe& b, Diagnostics& diagnostics) {
  if (!AllKnown(a.first_rank, a.ranks, b.first_rank, b.ranks) || SameRanks(a, b) || Disjoint(a, b)) return true;
  const int64_t first = std::max(*a.first_rank, *b.first_rank), end = std::min(EndOf(a), EndOf(b));
  const std::string message = absl::StrCat("modules ", *a.name, " (", RanksText(*a.first_rank, EndOf(a)), ") and ",
                                           *b.name, " (", RanksText(*b.first_rank, EndOf(b)), ") share ",
                                           RanksText(first, end), ", but not all of their ranks");
  const std::string help = "place modules on disjoint ranks, or on exactly the same ones (colocated)";
  // Modules that begin together are meant to end together: the smaller one is the mistake.
  if (*a.first_rank == *b.first_rank && a.ranks.where.known() && b.ranks.where.known()) {
    const auto& [fewer, more] = *a.ranks < *b.ranks ? std::tie(a, b) : std::tie(b, a);
    Diagnostic& problem = diagnostics.Error(DiagnosticKind::kPlacementsOverlap, fewer.ranks.where, message, help);
    problem.notes.push_back({more.ranks.where, absl::StrCat("module ", *more.name, " has ", *more.ranks, " ranks")});
    return false;
  }
  Diagnostic& problem = diagnostics.Error(DiagnosticKind::kPlacementsOverlap, PlacementOf(b), message, help);
  problem.notes.push_back({PlacementOf(a), absl::StrCat("module ", *a.name, " is placed here")});
  return false;
}

}  // namespace

int64_t EndOf(const ModuleRecipe& module) { return *module.first_rank + *module.ranks; }

std::string RanksText(int64_t first, int64_t end) {
  return end - first == 1 ? absl::StrCat("rank ", first) : absl::StrCat("ranks ", first, " to ", end - 1);
}

Location PlacementOf(const ModuleRecipe& module) {
  if (module.first_rank.where.known()) return module.first_rank.where;
  return module.placement.known() ? module.placement : module.name.where;
}

bool CheckOneLanguage(const Recipe& recipe, Diagnostics& diagnostics) {
  if (recipe.damaged.contains("modules")) return false;
  if (recipe.modules.empty()) {
    diagnostics.Error(DiagnosticKind::kLanguageModuleCount, recipe.name.where, "the recipe has no module",
                      absl::StrCat("add a module whose model is of kind ", LanguageKinds()));
    return false;
  }
  const ModuleRecipe* language = nullptr;
  bool fine = true;
  bool all_known = true;  // of which kinds the models are
  for (const ModuleRecipe& module : recipe.modules) {
    all_known = all_known && AllKnown(module.model.kind);
    if (!CarriesLoss(module.model)) continue;
    if (language != nullptr) {
      Diagnostic& problem = diagnostics.Error(DiagnosticKind::kLanguageModuleCount, module.name.where,
                                              absl::StrCat("a second language module, ", *module.name),
                                              absl::StrCat("keep one module whose model is of kind ", LanguageKinds()));
      problem.notes.push_back({language->name.where, absl::StrCat("language module ", *language->name, " is here")});
      fine = false;
    } else {
      language = &module;
    }
  }
  if (language != nullptr || !all_known) return fine && all_known;
  const ModuleRecipe& encoder = recipe.modules.front();
  diagnostics.Error(DiagnosticKind::kEncoderAlone, encoder.name.where,
                    absl::StrCat("encoder ", *encoder.name, " has no language module, so nothing gives it a loss"),
                    absl::StrCat("add a module whose model is of kind ", LanguageKinds(), ", and a bridge to it"));
  return false;
}

bool CheckExpertAxes(const ModuleRecipe& module, Diagnostics& diagnostics) {
  if (!AllKnown(module.model.kind, module.model.pattern) || HasExperts(module.model)) return true;
  bool fine = MustBeOne(module.ep, "ep", module, diagnostics);
  fine &= MustBeOne(module.expert_tp, "expert_tp", module, diagnostics);
  const auto without_effect = [&](const Location& where, const std::string& what, const char* key) {
    diagnostics.Error(DiagnosticKind::kNoExperts, where,
                      absl::StrCat(what, " on module ", *module.name, ", which has no experts"),
                      absl::StrCat("leave ", key, " out"));
    fine = false;
  };
  if (AllKnown(module.dispatch) && *module.dispatch != "auto")
    without_effect(module.dispatch.where, absl::StrCat("dispatch ", *module.dispatch), "dispatch");
  if (AllKnown(module.overlap_dispatch) && *module.overlap_dispatch)
    without_effect(module.overlap_dispatch.where, "overlap_dispatch", "overlap_dispatch");
  return fine;
}

bool CheckSharedRanks(const Recipe& recipe, Diagnostics& diagnostics) {
  bool fine = true;
  for (size_t j = 0; j < recipe.modules.size(); ++j) {
    for (size_t i = 0; i < j; ++i) fine &= CheckPair(recipe.modules[i], recipe.modules[j], diagnostics);
  }
  if (!fine || recipe.modules.size() < 2) return fine;
  for (const ModuleRecipe& module : recipe.modules) {
    if (!AllKnown(module.first_rank, module.ranks)) return false;
  }
  const ModuleRecipe& first = recipe.modules.front();
  const auto shares = [&](const ModuleRecipe& module) {
    return std::any_of(recipe.modules.begin(), recipe.modules.end(),
                       [&](const ModuleRecipe& other) { return &other != &module && SameRanks(module, other); });
  };
  // All colocated, or all disjoint: a rank's program runs one module's stage, or all modules in turn.
  const auto apart = std::find_if(recipe.modules.begin(), recipe.modules.end(),
                                  [&](const ModuleRecipe& module) { return !SameRanks(module, first); });
  if (apart == recipe.modules.end()) {
    for (size_t i = 0; i < recipe.modules.size(); ++i) {
      fine &= CheckColocated(recipe.modules[i], recipe.modules[i == 0 ? 1 : 0], diagnostics);
    }
    return fine;
  }
  const auto together = std::find_if(recipe.modules.begin(), recipe.modules.end(), shares);
  if (together == recipe.modules.end()) return true;
  // The message names one module that shares ranks and one that does not.
  const ModuleRecipe& alone = SameRanks(*apart, *together) ? first : *apart;
  Diagnostic& problem = diagnostics.Error(
      DiagnosticKind::kPlacementsOverlap, PlacementOf(*together),
      absl::StrCat("module ", *together->name, " shares ", RanksText(*together->first_rank, EndOf(*together)),
                   " with another, but module ", *alone.name, " has ranks of its own"),
      "place all modules on the same ranks, or each on its own");
  problem.notes.push_back({PlacementOf(alone), absl::StrCat("module ", *alone.name, " is placed here")});
  return false;
}

}  // namespace planwright
