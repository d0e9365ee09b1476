#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "planner/base/paper/markup.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"
#include "planner/views/show/page/page.h"

namespace planwright {
namespace {

constexpr double kBridgesHeight = 190, kBridgesTop = 34, kBridgesBottom = kBridgesHeight - 34;
constexpr size_t kMostWires = 512;  // of one bridge: more cannot be told apart, and make the page large

// Half of the widest label: the numbers of the first and the last rank stick out from their marks by so much.
double LabelMargin(const std::set<int>& ranks) {
  return ranks.empty() ? 0 : LabelWidth(std::to_string(*ranks.rbegin())) / 2;
}

// The middle of each rank's mark along one side, from left to right.
std::map<int, double> MarkPositions(const std::set<int>& ranks) {
  std::map<int, double> marks;
  const double margin = LabelMargin(ranks), space = (kDrawingWidth - 2 * margin) / static_cast<double>(ranks.size());
  double x = margin + space / 2;
  for (int rank : ranks) marks[rank] = x, x += space;
  return marks;
}

// Marks of one side at height `y`, with rank numbers at `text_y` below as many of them as have room.
void DrawRanks(const std::map<int, double>& marks, double y, double text_y, const std::string& color,
               Drawing& drawing) {
  const double space = marks.size() > 1 ? std::next(marks.begin())->second - marks.begin()->second : kDrawingWidth;
  const double width = std::clamp(space - 1, 1.0, 40.0);
  const double label = LabelWidth(std::to_string(marks.rbegin()->first)) + 8;
  size_t each = 1;  // every first, second, fourth ... mark has its number
  while (static_cast<double>(each) * space < label) each *= 2;
  const size_t drawn =
      std::max<size_t>(1, static_cast<size_t>(std::ceil(1 / space)));  // at most one mark for each pixel
  size_t i = 0;
  for (const auto& [rank, x] : marks) {
    if (i % drawn == 0) drawing.Rect(x - width / 2, y, width, 12, color, Cat("rank ", rank));
    if (i++ % each == 0) drawing.Text(x, text_y, std::to_string(rank), "mid small");
  }
}

// A curve from a source at the top to a sink at the bottom, vertical at both ends.
std::string WirePath(double from, double to) {
  const double middle = (kBridgesTop + kBridgesBottom) / 2;
  return Cat("M", Px(from), " ", Px(kBridgesTop + 12), " C", Px(from), " ", Px(middle), " ", Px(to), " ", Px(middle),
             " ", Px(to), " ", Px(kBridgesBottom - 12));
}

std::string BridgeDrawing(const Plan& plan, const Bridge& bridge) {
  std::set<int> from, to;
  for (const Transfer& transfer : bridge.forward) {
    from.insert(transfer.from_rank);
    to.insert(transfer.to_rank);
  }
  const std::map<int, double> sources = MarkPositions(from), sinks = MarkPositions(to);
  const std::string source_color = ModuleColor(plan, bridge.from), sink_color = ModuleColor(plan, bridge.to);
  Drawing drawing(kDrawingWidth, kBridgesHeight, Cat("transfers from ", bridge.from, " to ", bridge.to));
  const size_t each = (bridge.forward.size() + kMostWires - 1) / kMostWires;
  for (size_t i = 0; i < bridge.forward.size(); i += each) {
    const Transfer& t = bridge.forward[i];
    drawing.Path(WirePath(sources.at(t.from_rank), sinks.at(t.to_rank)), Cat("wire ", source_color, "l"),
                 Cat("rank ", t.from_rank, " to rank ", t.to_rank, ": samples [", t.first_sample, ", ", t.end_sample,
                     ") of the microbatch"));
  }
  DrawRanks(sources, kBridgesTop, kBridgesTop - 8, source_color + "b", drawing);
  DrawRanks(sinks, kBridgesBottom - 12, kBridgesBottom + 14, sink_color + "b", drawing);
  drawing.Text(0, 11, bridge.from, "soft small");
  drawing.Text(0, kBridgesHeight - 2, bridge.to, "soft small");
  return drawing.Markup() +
         (each > 1 ? Cat("<p class=\"soft\">One of every ", each, " transfers is drawn.</p>\n") : "");
}

}  // namespace

std::string BridgesSection(const Plan& plan) {
  std::string body = plan.bridges.empty() ? "<p>No bridges.</p>\n" : "";
  for (const Bridge& bridge : plan.bridges) {
    int64_t samples = 0;  // of a microbatch: where the last transfer ends
    for (const Transfer& transfer : bridge.forward) samples = std::max(samples, transfer.end_sample);
    body += Cat("<h3>", Escaped(bridge.from), " → ", Escaped(bridge.to), "</h3>\n<p class=\"soft\">",
                Escaped(bridge.kind), ", ", Counted(static_cast<int64_t>(bridge.forward.size()), "transfer"),
                " a microbatch of ", Counted(samples, "sample"), "; gradients come back the same way.</p>\n");
    if (!bridge.forward.empty()) body += BridgeDrawing(plan, bridge);
  }
  return Section("bridges", "Bridges", body);
}

}  // namespace planwright
