#include "planner/compile/topology/place_modules.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/compile/topology/check_layout.h"
#include "planner/compile/topology/check_modules.h"
#include "planner/compile/topology/derive_grids.h"
#include "planner/compile/topology/lint_placement.h"

namespace planwright {
namespace {

// Every rank of the world belongs to a module. The world ends with the last module; GPUs of the cluster behind it are
// only a warning.
bool CheckCover(const Recipe& recipe, Diagnostics& diagnostics) {
  std::vector<const ModuleRecipe*> by_rank;
  for (const ModuleRecipe& module : recipe.modules) {
    if (!AllKnown(module.first_rank, module.ranks)) return false;
    by_rank.push_back(&module);
  }
  std::stable_sort(by_rank.begin(), by_rank.end(), [](auto* a, auto* b) { return *a->first_rank < *b->first_rank; });
  int64_t covered = 0;
  bool fine = true;
  for (const ModuleRecipe* module : by_rank) {
    if (*module->first_rank > covered) {
      diagnostics.Error(
          DiagnosticKind::kRanksNotCovered, PlacementOf(*module),
          absl::StrCat(RanksText(covered, *module->first_rank), " below module ", *module->name,
                       *module->first_rank - covered == 1 ? " belongs" : " belong", " to no module"),
          absl::StrCat("start module ", *module->name, " at rank ", covered, ", or place a module there"));
      fine = false;
    }
    covered = std::max(covered, EndOf(*module));
  }
  return fine;
}

// `world`: GPUs of the cluster.
bool CheckInsideCluster(const Recipe& recipe, int64_t world, Diagnostics& diagnostics) {
  bool fine = true;
  for (const ModuleRecipe& module : recipe.modules) {
    if (!AllKnown(module.first_rank, module.ranks) || EndOf(module) <= world) continue;
    Diagnostic& problem = diagnostics.Error(
        DiagnosticKind::kOutsideWorld, module.ranks.where.known() ? module.ranks.where : PlacementOf(module),
        absl::StrCat("module ", *module.name, " has ", RanksText(*module.first_rank, EndOf(module)),
                     ", but the cluster ends at rank ", world - 1),
        absl::StrCat("use at least ",
                     (EndOf(module) + *recipe.cluster.gpus_per_node - 1) / *recipe.cluster.gpus_per_node,
                     " nodes, or fewer ranks"));
    if (recipe.cluster.nodes.where.known()) {
      problem.notes.push_back(
          {recipe.cluster.nodes.where,
           absl::StrCat(*recipe.cluster.nodes, *recipe.cluster.nodes == 1 ? " node of " : " nodes of ",
                        *recipe.cluster.gpus_per_node, " GPUs here")});
    }
    if (recipe.cluster.gpus_per_node.where.known())
      problem.notes.push_back({recipe.cluster.gpus_per_node.where,
                               absl::StrCat("gpus_per_node is ", *recipe.cluster.gpus_per_node, " here")});
    fine = false;
  }
  return fine;
}

bool CheckModuleNames(const Recipe& recipe, Diagnostics& diagnostics) {
  // Names of groups, frames and values begin with the module's name, so it must be unique.
  std::map<std::string, const ModuleRecipe*> seen;
  bool fine = true;
  for (const ModuleRecipe& module : recipe.modules) {
    const auto [earlier, fresh] = seen.emplace(*module.name, &module);
    if (fresh) continue;
    Diagnostic& problem =
        diagnostics.Error(DiagnosticKind::kRepeatedModule, module.name.where,
                          absl::StrCat("a second module named ", *module.name), "give each module its own name");
    problem.notes.push_back({earlier->second->name.where, "the first one is here"});
    fine = false;
  }
  return fine;
}

bool CheckPlacements(const Recipe& recipe, Diagnostics& diagnostics) {
  if (recipe.modules.empty()) return true;
  const bool disjoint = CheckSharedRanks(recipe, diagnostics);
  const ClusterRecipe& cluster = recipe.cluster;
  const bool inside = !AllKnown(cluster.gpu, cluster.nodes, cluster.gpus_per_node) || *cluster.gpu == "none" ||
                      CheckInsideCluster(recipe, *cluster.nodes * *cluster.gpus_per_node, diagnostics);
  return CheckCover(recipe, diagnostics) && inside && disjoint;
}

}  // namespace

std::optional<std::vector<Grid>> PlaceModules(const Recipe& recipe, Diagnostics& diagnostics) {
  bool fine = CheckModuleNames(recipe, diagnostics);
  fine &= CheckOneLanguage(recipe, diagnostics);
  std::vector<Grid> grids;
  for (const ModuleRecipe& module : recipe.modules) {
    const std::optional<Grid> grid = DeriveGrid(module, diagnostics);
    if (grid) grids.push_back(*grid);
    fine &= grid.has_value();
    fine &= CheckExpertAxes(module, diagnostics);
    if (!AllKnown(module.model.kind)) {
      fine = false;
      continue;
    }
    fine &= CheckModelShape(module, diagnostics);
    fine &= CheckLayout(recipe, module, diagnostics);
  }
  // Placements are compared only if each one is in range, also when some grid does not fit.
  const bool ranks_known = std::all_of(recipe.modules.begin(), recipe.modules.end(), [](const ModuleRecipe& module) {
    return !AllKnown(module.first_rank, module.ranks) || (*module.first_rank >= 0 && *module.ranks >= 1);
  });
  if (ranks_known) fine &= CheckPlacements(recipe, diagnostics);
  if (!fine) return std::nullopt;
  if (AllKnown(recipe.cluster.gpu, recipe.cluster.nodes, recipe.cluster.gpus_per_node))
    LintPlacement(recipe, grids, diagnostics);
  return grids;
}

}  // namespace planwright
