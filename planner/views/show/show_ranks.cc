#include <algorithm>

#include "planner/base/paper/table.h"
#include "planner/plan/ranks_text.h"
#include "planner/views/show/node_runs.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

std::string RoleName(const Plan& plan, int rank) {
  const Role* role = plan.RoleOf(rank);
  return role ? role->name : "";
}

Json Coordinates(const Grid& grid, int rank, View view) {
  Json json = Json::object();
  for (Axis axis : AxesOf(view)) json[std::string(AxisName(axis))] = IndexInGroup(grid, view, {axis}, rank);
  return json;
}

// Without expert parallelism the expert view says nothing new.
bool HasExperts(const Grid& grid) { return grid.ep > 1 || grid.expert_tp > 1; }

// A horizontal line of a row of boxes: "┌──────┬──────┐".
std::string Rule(const char* left, const char* middle, const char* right, size_t boxes, size_t width) {
  std::string text = left;
  for (size_t box = 0; box < boxes; ++box) {
    if (box > 0) text += middle;
    for (size_t i = 0; i < width + 2; ++i) text += "─";
  }
  return text + right + "\n";
}

// A node's boxes, each `width` characters wide inside, in as many rows as a line of `columns` characters needs.
std::string NodeText(const std::vector<std::vector<std::string>>& boxes, size_t width, const std::string& title,
                     size_t columns) {
  const size_t indent_width = Width(title) + 2;
  const size_t most = std::max<size_t>(1, (columns - std::min(columns, indent_width + 1)) / (width + 3));
  // Rows of equal length: 8 boxes of which 6 fit become 4 and 4.
  const size_t rows = (boxes.size() + most - 1) / most, a_row = (boxes.size() + rows - 1) / rows;
  const std::string indent(indent_width, ' ');
  std::string text;
  for (size_t first = 0; first < boxes.size(); first += a_row) {
    const size_t end = std::min(boxes.size(), first + a_row);
    size_t height = 0;
    for (size_t i = first; i < end; ++i) height = std::max(height, boxes[i].size());
    text += indent + Rule("┌", "┬", "┐", end - first, width);
    for (size_t line = 0; line < height; ++line) {
      text += first == 0 && line == 0 ? title + "  " : indent;
      for (size_t i = first; i < end; ++i)
        text += "│ " + PadRight(line < boxes[i].size() ? boxes[i][line] : "", width) + " ";
      text += "│\n";
    }
    text += indent + Rule("└", "┴", "┘", end - first, width);
  }
  return text;
}

// Every node of a small world. Of a large world one drawing for each run of similar nodes.
std::string BoxesText(const Plan& plan, size_t columns) {
  constexpr int kSingle = 4;        // worlds of at most so many nodes are drawn node by node
  constexpr size_t kMostRuns = 24;  // drawn; the text says how many more there are
  const int per_node = RanksPerNode(plan);
  std::vector<NodeRun> runs = NodeRuns(plan, kSingle);
  const size_t all = runs.size();
  if (runs.size() > kMostRuns) runs.resize(kMostRuns);
  size_t title_width = 0, width = 0;
  std::vector<std::vector<std::vector<std::string>>> boxes;
  bool several = false;
  for (const NodeRun& run : runs) {
    title_width = std::max(title_width, RunTitle(run).size());
    several |= run.nodes > 1;
    boxes.emplace_back();
    for (int i = 0; i < per_node && run.first_node * per_node + i < plan.world_size; ++i)
      boxes.back().push_back(RankBoxLines(plan, run, i));
    for (const auto& box : boxes.back()) {
      for (const std::string& line : box) width = std::max(width, Width(line));
    }
  }
  // Only runs of several nodes have "+4n" in their boxes.
  std::string text = several ? "n counts the nodes of a run from 0\n" : "";
  for (size_t i = 0; i < runs.size(); ++i)
    text += NodeText(boxes[i], width, PadRight(RunTitle(runs[i]), title_width), columns);
  if (runs.size() < all)
    text += "(and " + std::to_string(all - runs.size()) + " more kinds of nodes; --json has every rank)\n";
  return text;
}

}  // namespace

std::string ShowRanks(const Plan& plan, size_t width) {
  std::string text = Counted(plan.world_size, "rank") + " on " + Counted(NodesOf(plan), "node") + " of " +
                     std::to_string(plan.cluster.gpus_per_node) + " (gpu " + plan.cluster.gpu + ")\n\n";
  Table modules({"module", "ranks", "dense", "expert"});
  for (const Module& module : plan.modules) {
    const Grid& grid = module.grid;
    modules.Add({module.name, RanksText(grid.first_rank, grid.ranks()), GridSizesText(grid, View::kDense),
                 HasExperts(grid) ? GridSizesText(grid, View::kExpert) : ""});
  }
  text += modules.Text("", width) + "\n";
  return text + BoxesText(plan, width);
}

Json ShowRanksJson(const Plan& plan) {
  const int per_node = RanksPerNode(plan);
  Json ranks = Json::array();
  for (int rank = 0; rank < plan.world_size; ++rank) {
    Json modules = Json::object();
    for (const Module& module : plan.modules) {
      if (!module.grid.contains(rank)) continue;
      modules[module.name] = {{"dense", Coordinates(module.grid, rank, View::kDense)},
                              {"expert", Coordinates(module.grid, rank, View::kExpert)}};
    }
    ranks.push_back({{"rank", rank},
                     {"node", rank / per_node},
                     {"local_rank", rank % per_node},
                     {"role", RoleName(plan, rank)},
                     {"modules", std::move(modules)}});
  }
  return {{"world_size", plan.world_size}, {"ranks", std::move(ranks)}};
}

}  // namespace planwright
