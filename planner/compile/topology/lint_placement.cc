#include "planner/compile/topology/lint_placement.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/compile/topology/derive_grids.h"

namespace planwright {
namespace {

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

}  // namespace

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

}  // namespace planwright
