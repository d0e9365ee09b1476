#include "planner/run/measure/plan_rounds.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"
#include "planner/predict/estimate/communications_of_step.h"

namespace planwright {
namespace {

// What the steps of a plan communicate.
struct Contained {
  std::map<OpKind, std::pair<double, double>> sizes;  // least and most bytes
  std::set<std::pair<int, int>> shapes;               // ranks on a node, and nodes
};

Contained ContainedIn(const Plan& plan) {
  Contained contained;
  ForEachCommunication(plan, [&](const Instruction&, const CommunicationUse& use) {
    const auto [found, added] = contained.sizes.emplace(use.kind, std::pair(use.bytes, use.bytes));
    found->second = {std::min(found->second.first, use.bytes), std::max(found->second.second, use.bytes)};
    if (use.per_node * use.nodes == use.members) contained.shapes.emplace(use.per_node, use.nodes);
  });
  return contained;
}

// Groups that ranks can be cut into.
std::set<std::pair<int, int>> ShapesOf(const Plan& plan, const Contained& contained) {
  const int per_node = std::min(plan.world_size, plan.cluster.gpus_per_node);
  const int nodes = plan.world_size / plan.cluster.gpus_per_node;  // that are full
  std::set<std::pair<int, int>> shapes = contained.shapes;
  for (int size = 2; size < per_node; size *= 2) shapes.emplace(size, 1);
  if (per_node > 1) shapes.emplace(per_node, 1);
  for (int size = 2; size <= nodes; size *= 2) {
    shapes.emplace(1, size);
    shapes.emplace(per_node, size);
  }
  return shapes;
}

// Half the least size, and on by this factor to beyond the most; each in whole elements for all members.
std::set<int64_t> SizesOf(double least, double most, double factor, int64_t unit) {
  constexpr double kMost = 1 << 28;  // larger ones have the rate of the largest, and may have no room
  std::set<int64_t> sizes;
  const auto add = [&](double bytes) {
    sizes.insert(unit * std::max<int64_t>(1, std::llround(bytes / static_cast<double>(unit))));
  };
  const double end = std::min(2 * most, kMost);
  for (double size = std::min(least / 2, end); size < end; size *= factor) add(size);
  add(end);
  return sizes;
}

// So many in a row that a batch is much longer than what begins and ends it.
int64_t RepetitionsOf(double bytes) {
  constexpr double kBytes = 1 << 24, kMostInARow = 20;
  return std::llround(std::clamp(kBytes / bytes, 1.0, kMostInARow));
}

}  // namespace

CommunicationRounds RoundsFor(const Plan& plan) {
  constexpr int64_t kBatches = 7;
  CommunicationRounds rounds = {.ranks_per_node = plan.cluster.gpus_per_node};
  if (plan.world_size < 2) return rounds;
  const Contained contained = ContainedIn(plan);
  if (contained.sizes.empty()) return rounds;
  std::pair<double, double> all = contained.sizes.begin()->second;
  for (const auto& [kind, sizes] : contained.sizes)
    all = {std::min(all.first, sizes.first), std::max(all.second, sizes.second)};
  std::map<OpKind, std::pair<double, double>> kinds = contained.sizes;
  for (OpKind kind :
       {OpKind::kAllReduce, OpKind::kAllGather, OpKind::kReduceScatter, OpKind::kAllToAllV, OpKind::kExchange})
    kinds.emplace(kind, all);
  for (const auto& [per_node, nodes] : ShapesOf(plan, contained)) {
    for (const auto& [kind, sizes] : kinds) {
      if (kind == OpKind::kExchange && per_node * nodes != 2) continue;
      // Of rows that CPU ranks do not count no step tells a size: there is more between two sizes than for others.
      const double factor = plan.cluster.gpu == "none" && HasRowsOfItsOwn(kind) ? 2 : 4;
      for (int64_t bytes : SizesOf(sizes.first, sizes.second, factor, per_node * nodes * DTypeBytes(plan.dtype()))) {
        rounds.list.push_back({.kind = kind,
                               .per_node = per_node,
                               .nodes = nodes,
                               .bytes = bytes,
                               .batches = kBatches,
                               .repetitions = RepetitionsOf(static_cast<double>(bytes))});
      }
    }
  }
  if (rounds.list.size() > kMostRounds) rounds.list.resize(kMostRounds);
  return rounds;
}

absl::Status MeasureRounds(const Plan& plan, const std::string& run_dir, const CommunicationRounds& rounds,
                           Measurements& into) {
  if (rounds.list.empty()) return absl::OkStatus();  // then ranks write none
  for (int rank = 0; rank < plan.world_size; ++rank) {
    const std::string path = RoundTimesPath(run_dir, rank);
    const absl::StatusOr<std::string> text = ReadWholeFile(path, kRoundTimesJson.bytes);
    if (!text.ok()) return text.status();
    const absl::StatusOr<std::vector<std::vector<double>>> times = ReadRoundTimes(*text, rounds.list.size());
    if (!times.ok()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", times.status().message()));
    for (size_t i = 0; i < rounds.list.size(); ++i) {
      const CommunicationRound& round = rounds.list[i];
      const CommunicationUse use = {.kind = round.kind,
                                    .bytes = static_cast<double>(round.bytes),
                                    .members = round.members(),
                                    .per_node = round.per_node,
                                    .nodes = round.nodes};
      for (double seconds : (*times)[i]) into.AddAlone(use, seconds);
    }
  }
  return absl::OkStatus();
}

}  // namespace planwright
