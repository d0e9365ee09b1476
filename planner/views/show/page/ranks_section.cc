#include <algorithm>

#include "planner/base/paper/markup.h"
#include "planner/base/text/text.h"
#include "planner/plan/ranks_text.h"
#include "planner/views/show/node_runs.h"
#include "planner/views/show/page/page.h"

namespace planwright {
namespace {

constexpr int kLargeCells = 64;   // up to so many ranks: large cells with coordinates
constexpr int kEveryRank = 4096;  // up to so many ranks: a small cell for each; beyond, one node for each run of nodes
constexpr int kARow = 8;          // ranks of a node side by side

std::string CoordinatesText(const Grid& grid, int rank, View view) {
  std::string text;
  for (Axis axis : AxesOf(view))
    text += (text.empty() ? "" : " ") + std::string(AxisName(axis)) + std::to_string(CoordinateOf(grid, rank, axis));
  return text;
}

// What the mouse shows: the rank's coordinates in both views of each module on it.
std::string RankTitle(const Plan& plan, int rank) {
  std::string title =
      Cat("rank ", rank, " · node ", rank / RanksPerNode(plan), ", local rank ", rank % RanksPerNode(plan));
  for (const Module& module : plan.modules) {
    if (!module.grid.contains(rank)) continue;
    Append(title, "\n", module.name, ": ", CoordinatesText(module.grid, rank, View::kDense),
           "\nexperts: ", CoordinatesText(module.grid, rank, View::kExpert));
  }
  if (const Role* role = plan.RoleOf(rank)) Append(title, "\nrole ", role->name);
  return title;
}

// A cell's colors: a stripe for each module on the rank. Every second pipeline stage has the stronger shade.
void DrawStripes(const Plan& plan, int rank, double x, double y, double width, double height, Drawing& drawing) {
  std::vector<std::string> colors;
  for (const Module& module : plan.modules) {
    if (!module.grid.contains(rank)) continue;
    colors.push_back(ModuleColor(plan, module.name) + (CoordinateOf(module.grid, rank, Axis::kPp) % 2 == 1 ? "b" : ""));
  }
  if (colors.empty()) colors.push_back("band");
  const double stripe = height / static_cast<double>(colors.size());
  for (size_t i = 0; i < colors.size(); ++i)
    drawing.Rect(x, y + stripe * static_cast<double>(i), width, stripe, colors[i]);
}

// A cell with one line of text in its middle, or several from its top.
void DrawRank(const Plan& plan, int rank, double x, double y, double width, double height,
              const std::vector<std::string>& lines, Drawing& drawing) {
  drawing.Open("rank", Cat(" data-rank=\"", rank, "\""), RankTitle(plan, rank));
  DrawStripes(plan, rank, x, y, width, height, drawing);
  if (lines.size() == 1) {
    drawing.Text(x + width / 2, y + height / 2 + 4, lines[0], "mid small");
  } else {
    for (size_t i = 0; i < lines.size(); ++i)
      drawing.Text(x + 6, y + 15 + 14 * static_cast<double>(i), lines[i], i == 0 ? "strong" : "small");
  }
  drawing.Close();
}

// Large cells with coordinates. Runs of nodes are below each other.
std::string LargeMap(const Plan& plan, const std::vector<NodeRun>& runs) {
  const int per_node = RanksPerNode(plan), across = std::min(per_node, kARow), rows = (per_node + kARow - 1) / kARow;
  size_t lines = 0;
  for (const NodeRun& run : runs) lines = std::max(lines, RankBoxLines(plan, run, 0).size());
  const double width = 122, height = 10 + 14.0 * static_cast<double>(lines), head = 20,
               node_height = head + rows * (height + 3) + 8;
  Drawing drawing(across * (width + 3), node_height * static_cast<double>(runs.size()), "ranks by node");
  for (size_t i = 0; i < runs.size(); ++i) {
    const double top = node_height * static_cast<double>(i);
    drawing.Text(0, top + 14, RunTitle(runs[i]), "soft");
    for (int local = 0; local < per_node; ++local) {
      const int rank = runs[i].first_node * per_node + local;
      if (rank >= plan.world_size) break;
      DrawRank(plan, rank, (local % kARow) * (width + 3), top + head + (local / kARow) * (height + 3), width, height,
               RankBoxLines(plan, runs[i], local), drawing);
    }
  }
  return drawing.Markup();
}

// Small cells with rank numbers. Nodes are tiles, as many side by side as the page is wide.
std::string SmallMap(const Plan& plan) {
  const int per_node = RanksPerNode(plan), across = std::min(per_node, kARow), rows = (per_node + kARow - 1) / kARow;
  const int nodes = (plan.world_size + per_node - 1) / per_node;
  const double cell = plan.world_size > 1000 ? 30 : 28, height = 20, gap = 20;
  const double tile = across * (cell + 1) + gap, tile_height = 16 + rows * (height + 1) + 8;
  const int tiles = std::max(1, static_cast<int>((1078 + gap) / tile));
  Drawing drawing(tiles * tile - gap, (nodes + tiles - 1) / tiles * tile_height, "ranks by node");
  for (int node = 0; node < nodes; ++node) {
    const double left = node % tiles * tile, top = node / tiles * tile_height;
    drawing.Text(left, top + 11, "node " + std::to_string(node), "soft small");
    for (int local = 0; local < per_node && node * per_node + local < plan.world_size; ++local) {
      const int rank = node * per_node + local;
      DrawRank(plan, rank, left + (local % kARow) * (cell + 1), top + 16 + (local / kARow) * (height + 1), cell, height,
               {std::to_string(rank)}, drawing);
    }
  }
  return drawing.Markup();
}

std::string ModulesTable(const Plan& plan) {
  HtmlTable table({"module", "ranks", "dense grid", "expert grid"});
  for (const Module& module : plan.modules) {
    table.Add({Cat("<span class=\"chip ", ModuleColor(plan, module.name), "\"></span>", Escaped(module.name)),
               RanksText(module.grid.first_rank, module.grid.ranks()), GridSizesText(module.grid, View::kDense),
               GridSizesText(module.grid, View::kExpert)});
  }
  return table.Markup();
}

}  // namespace

std::string RanksSection(const Plan& plan) {
  std::string body = ModulesTable(plan);
  if (plan.world_size <= kLargeCells) {
    body += LargeMap(plan, NodeRuns(plan, kLargeCells));
  } else if (plan.world_size <= kEveryRank) {
    body += SmallMap(plan);
  } else {
    std::vector<NodeRun> runs = NodeRuns(plan, 0);
    constexpr size_t kMostRuns = 64;  // bounds the page
    if (runs.size() > kMostRuns) runs.resize(kMostRuns);
    body +=
        "<p class=\"soft\">One node stands for a run of nodes with the same modules and stages; n counts the nodes of "
        "a run from "
        "0.</p>\n" +
        LargeMap(plan, runs);
  }
  bool stages = false;
  for (const Module& module : plan.modules) stages |= module.grid.pp > 1;
  return Section("ranks", "Ranks",
                 Cat(body, "<p class=\"soft\">Rest the mouse on a rank for its coordinates.",
                     stages ? " Every second pipeline stage is drawn stronger." : "", "</p>\n"));
}

}  // namespace planwright
