#include "planner/compile/topology/place_modules.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/compile/topology/check_layout.h"
#include "planner/compile/topology/check_modules.h"
#include "planner/compile/topology/derive_grids.h"

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

const Location& Known(const Location& where, const Location& otherwise) { return where.known() ? where : otherwise; }

// A group that spans nodes, by its first and last rank.
struct GroupAcrossNodes {
  int first = 0, last = 0;
};

// `stride`: how far apart neighbours of a group along `axis` are in ranks. Ranks fill nodes in order.
std::optional<GroupAcrossNodes> FindGroupAcrossNodes(const Grid& grid, Axis axis, int stride, int gpus_per_node) {
  // Groups along the axis lie in blocks of `reach` ranks. If blocks fit nodes, no group spans two.
  const int reach = grid.size(axis) * stride;
  if (grid.size(axis) == 1 || (gpus_per_node % reach == 0 && grid.first_rank % reach == 0)) return std::nullopt;
  for (int rank = grid.first_rank; rank < grid.first_rank + grid.ranks(); ++rank) {
    const int last = rank + (grid.size(axis) - 1) * stride;
    if (CoordinateOf(grid, rank, axis) == 0 && rank / gpus_per_node != last / gpus_per_node)
      return GroupAcrossNodes{rank, last};
  }
  return std::nullopt;
}

// A lint of the groups along one axis.
struct AxisLint {
  DiagnosticKind kind;
  Axis axis;
  int stride;
  const Located<int64_t>& size;
  const char* traffic;  // what travels over the group
};

void LintAxis(const ModuleRecipe& module, const Grid& grid, int gpus, const AxisLint& lint, Diagnostics& diagnostics) {
  const std::optional<GroupAcrossNodes> group = FindGroupAcrossNodes(grid, lint.axis, lint.stride, gpus);
  if (!group) return;
  const std::string name(AxisName(lint.axis));
  const int reach = grid.size(lint.axis) * lint.stride;
  Diagnostic& warning = diagnostics.Warning(
      lint.kind, Known(lint.size.where, module.placement),
      absl::StrCat(name, " groups of module ", *module.name, " span nodes: ranks ", group->first, " to ", group->last,
                   " are on nodes ", group->first / gpus, " to ", group->last / gpus),
      gpus % reach == 0
          ? absl::StrCat(lint.traffic, "; start the module at a multiple of ", reach, " to keep each group on one node")
          : absl::StrCat(lint.traffic, "; use ", name, " ",
                         std::gcd(grid.size(lint.axis), std::max(1, gpus / lint.stride)),
                         " to keep each group on one node"));
  if (gpus % reach == 0) {
    warning.notes.push_back({Known(module.first_rank.where, module.placement),
                             absl::StrCat("the module starts at rank ", grid.first_rank, " here")});
  }
}

// A module that is larger than a node should begin and end at the edge of one.
void LintSplitNode(const ModuleRecipe& module, const Grid& grid, int gpus, Diagnostics& diagnostics) {
  const int end = grid.first_rank + grid.ranks();
  if (grid.ranks() <= gpus || (grid.first_rank % gpus == 0 && end % gpus == 0)) return;
  const bool begins = grid.first_rank % gpus != 0;
  diagnostics.Warning(
      DiagnosticKind::kModuleSplitsNode, Known(begins ? module.first_rank.where : module.ranks.where, module.placement),
      absl::StrCat("module ", *module.name, " (ranks ", grid.first_rank, " to ", end - 1, ") ",
                   begins ? "begins" : "ends", " inside node ", (begins ? grid.first_rank : end) / gpus),
      absl::StrCat("its part of that node has fewer network cards for the same traffic: give it whole nodes of ", gpus,
                   " ranks"));
}

// A module without experts is refused elsewhere. Over expert_tp there is no choice of dispatch, but rows that travel.
void LintDispatch(const ModuleRecipe& module, const Grid& grid, Diagnostics& diagnostics) {
  const auto warn = [&](const Location& where, const std::string& what, const char* why, const char* help) {
    diagnostics
        .Warning(DiagnosticKind::kDispatchUnused, Known(where, module.placement),
                 absl::StrCat(what, " has no effect: every rank of module ", *module.name, why), help)
        .notes.push_back({Known(module.ep.where, module.placement), "ep is 1 here"});
  };
  if (*module.dispatch != "auto" && grid.ep == 1)
    warn(module.dispatch.where, absl::StrCat("dispatch ", *module.dispatch), " has all experts",
         "leave dispatch out, or use ep 2 or more");
  if (*module.overlap_dispatch && grid.ep * grid.expert_tp == 1)
    warn(module.overlap_dispatch.where, "overlap_dispatch", " has all experts, and no token travels",
         "leave overlap_dispatch out, or use ep 2 or more");
}

// `world`: ranks of all modules.
void LintIdle(const Recipe& recipe, int world, Diagnostics& diagnostics) {
  const int64_t nodes = *recipe.cluster.nodes, gpus = *recipe.cluster.gpus_per_node, idle = nodes * gpus - world;
  if (idle <= 0) return;
  const int64_t needed = (world + gpus - 1) / gpus;
  diagnostics.Warning(DiagnosticKind::kIdleGpus, Known(recipe.cluster.nodes.where, recipe.modules.front().placement),
                      absl::StrCat("the modules use ", world, " of the cluster's ", nodes * gpus, " GPUs: ", idle,
                                   idle == 1 ? " stays" : " stay", " idle"),
                      needed < nodes
                          ? absl::StrCat("give a module more ranks, or take ", needed, needed == 1 ? " node" : " nodes")
                          : "give a module more ranks");
}

// Placements that work but waste time or GPUs: groups across nodes, modules that split nodes, idle GPUs. Warnings
// PW0210 to PW0213. `grids`: in recipe order. None for CPU ranks (gpu: none), whose nodes do not matter.
void LintPlacement(const Recipe& recipe, const std::vector<Grid>& grids, Diagnostics& diagnostics) {
  for (size_t i = 0; i < grids.size(); ++i) LintDispatch(recipe.modules[i], grids[i], diagnostics);
  if (*recipe.cluster.gpu == "none") return;
  const int gpus = static_cast<int>(*recipe.cluster.gpus_per_node);
  for (size_t i = 0; i < grids.size(); ++i) {
    const ModuleRecipe& module = recipe.modules[i];
    // The axes with traffic in every layer. dp and pp may span nodes: they communicate once a step, or one tensor a
    // stage.
    LintAxis(module, grids[i], gpus,
             {DiagnosticKind::kExpertGroupAcrossNodes, Axis::kEp, grids[i].expert_tp, module.ep,
              "every MoE layer exchanges rows of tokens over the group, and links between nodes are far slower than "
              "inside one"},
             diagnostics);
    LintAxis(module, grids[i], gpus,
             {DiagnosticKind::kTensorGroupAcrossNodes, Axis::kTp, 1, module.tp,
              "every layer gathers and reduces its activations over the group, and links between nodes are far slower "
              "than inside one"},
             diagnostics);
    LintAxis(module, grids[i], gpus,
             {DiagnosticKind::kTensorGroupAcrossNodes, Axis::kExpertTp, 1, module.expert_tp,
              "every MoE layer gathers and reduces its experts' rows over the group, and links between nodes are far "
              "slower than inside one"},
             diagnostics);
    LintSplitNode(module, grids[i], gpus, diagnostics);
  }
  LintIdle(recipe, WorldSizeOf(grids), diagnostics);
}

}  // namespace

std::optional<std::vector<Grid>> GridsOf(const Placement& placement) {
  if (!placement.complete) return std::nullopt;
  std::vector<Grid> grids;
  for (const std::optional<Grid>& grid : placement.grids) grids.push_back(*grid);
  return grids;
}

Placement PlaceModules(const Recipe& recipe, Diagnostics& diagnostics) {
  bool fine = CheckModuleNames(recipe, diagnostics);
  fine &= CheckOneLanguage(recipe, diagnostics);
  Placement placement;
  for (const ModuleRecipe& module : recipe.modules) {
    const std::optional<Grid>& grid = placement.grids.emplace_back(DeriveGrid(module, diagnostics));
    std::vector<int>& stages = placement.stages.emplace_back();
    fine &= grid.has_value();
    fine &= CheckExpertAxes(module, diagnostics);
    const bool known = AllKnown(module.model.kind) && AllKnown(module.model.pattern);
    const auto pattern = known ? PatternOfLayers(module.model, diagnostics) : std::nullopt;
    const auto shape = pattern ? CheckModelShape(module, *pattern, diagnostics) : std::nullopt;
    fine &= shape.has_value();
    if (shape) stages = *shape;
    if (pattern) fine &= CheckLayout(recipe, module, *pattern, diagnostics);
  }
  // Placements are compared only if each one is in range, also when some grid does not fit.
  const bool ranks_known = std::all_of(recipe.modules.begin(), recipe.modules.end(), [](const ModuleRecipe& module) {
    return !AllKnown(module.first_rank, module.ranks) || (*module.first_rank >= 0 && *module.ranks >= 1);
  });
  if (ranks_known) fine &= CheckPlacements(recipe, diagnostics);
  placement.complete = fine;
  if (fine && AllKnown(recipe.cluster.gpu, recipe.cluster.nodes, recipe.cluster.gpus_per_node))
    LintPlacement(recipe, *GridsOf(placement), diagnostics);
  return placement;
}

}  // namespace planwright
