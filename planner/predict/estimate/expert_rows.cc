#include "planner/predict/estimate/expert_rows.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "planner/wire/records/routing_folder.h"
#include "planner/wire/records/routing_format.h"

namespace planwright {
namespace {

constexpr int64_t kMostSteps = 4;                   // the last ones: what routers learnt, and many microbatches
constexpr int64_t kMostChoices = int64_t{1} << 26;  // of one layer: of longer steps, one

// To which ep group the tokens of a sample go: they are cut over cp in mirrored halves and over tp in parts
// (docs/layouts/sequence.md).
class GroupsOfTokens {
 public:
  GroupsOfTokens(const Grid& grid, int64_t length) : grid_(grid) {
    const int64_t cp = std::max(1, grid.cp), tp = std::max(1, grid.tp);
    half_ = std::max<int64_t>(1, length / (2 * cp)), part_ = std::max<int64_t>(1, length / cp / tp);
    for (int lane = 0; lane < grid.dp; ++lane) {
      for (int c = 0; c < cp; ++c) {
        for (int t = 0; t < tp; ++t) {
          const int rank = grid.first_rank + t + grid.tp * (c + grid.cp * lane);  // of the first stage
          groups_.push_back(CoordinateOf(grid, rank, Axis::kExpertDp));
        }
      }
    }
  }

  int Of(int lane, int64_t position) const {
    const int64_t cp = std::max(1, grid_.cp), tp = std::max(1, grid_.tp);
    const int64_t chunk = std::min(position / half_, 2 * cp - 1), c = std::min(chunk, 2 * cp - 1 - chunk);
    const int64_t local = (cp == 1 ? position : position % half_ + (chunk < cp ? 0 : half_));
    return groups_[static_cast<size_t>(std::min(local / part_, tp - 1) + tp * (c + cp * lane))];
  }

 private:
  const Grid& grid_;
  int64_t half_ = 1, part_ = 1;
  std::vector<int> groups_;  // by tp, cp and lane: the expert_dp coordinate
};

// Rows of a microbatch by group and expert, and what they make of a layer.
class Counter {
 public:
  // `nodes`: by ep coordinate, the node of that rank of a group.
  Counter(const Module& module, const std::vector<int>& nodes, LayerRows& layer)
      : nodes_(nodes), ep_(static_cast<size_t>(std::max(1, module.grid.ep))),
        experts_of_rank_(static_cast<size_t>(std::max<int64_t>(1, module.experts() / std::max(1, module.grid.ep)))),
        counts_(ep_ * experts_of_rank_ * static_cast<size_t>(std::max(1, module.grid.expert_dp)), 0), layer_(layer) {
    layer_.ranks.assign(ep_, 0);
    layer_.fullest = layer_.fullest_node = layer_.fullest_expert = 0;
  }

  void Add(int group, RoutingId expert) {
    const size_t experts = ep_ * experts_of_rank_;
    const auto of_group = static_cast<size_t>(std::clamp<int64_t>(expert, 0, static_cast<int64_t>(experts) - 1));
    ++counts_[static_cast<size_t>(group) * experts + of_group];
  }

  // A microbatch is over.
  void Fold() {
    for (size_t first = 0; first < counts_.size(); first += ep_ * experts_of_rank_) {
      int64_t sum = 0, most = 0, most_of_expert = 0;
      std::map<int, std::pair<int64_t, int64_t>> of_node;  // rows and ranks
      for (size_t e = 0; e < ep_; ++e) {
        const int64_t* begin = counts_.data() + first + e * experts_of_rank_;
        const int64_t* end = begin + experts_of_rank_;
        const int64_t of_rank = std::accumulate(begin, end, int64_t{0});
        layer_.ranks[e] += static_cast<double>(of_rank);
        sum += of_rank;
        of_node[nodes_[e]].first += of_rank, ++of_node[nodes_[e]].second;
        if (of_rank > most) most = of_rank, most_of_expert = *std::max_element(begin, end);
      }
      if (sum == 0) continue;
      double most_of_node = 0;  // of each of its ranks
      for (const auto& [node, rows] : of_node)
        most_of_node = std::max(most_of_node, static_cast<double>(rows.first) / static_cast<double>(rows.second));
      layer_.fullest_node += most_of_node * static_cast<double>(ep_) / static_cast<double>(sum);
      layer_.fullest += static_cast<double>(most) * static_cast<double>(ep_) / static_cast<double>(sum);
      layer_.fullest_expert +=
          static_cast<double>(most_of_expert) * static_cast<double>(experts_of_rank_) / static_cast<double>(most);
      all_ += static_cast<double>(sum), ++folded_;
    }
    std::fill(counts_.begin(), counts_.end(), 0);
  }

  void Finish() {
    layer_.fullest = folded_ > 0 ? layer_.fullest / folded_ : 1;
    layer_.fullest_node = folded_ > 0 ? layer_.fullest_node / folded_ : 1;
    layer_.fullest_expert = folded_ > 0 ? layer_.fullest_expert / folded_ : 1;
    for (double& rows : layer_.ranks) rows = all_ > 0 ? rows * static_cast<double>(ep_) / all_ : 1;
  }

 private:
  const std::vector<int> nodes_;
  const size_t ep_, experts_of_rank_;
  std::vector<int64_t> counts_;
  LayerRows& layer_;
  double folded_ = 0, all_ = 0;
};

absl::Status CountLayer(const Plan& plan, const Module& module, const std::string& path, int64_t first_step,
                        int64_t steps, LayerRows& layer) {
  const Budget& budget = plan.budget;
  const int64_t top_k = module.top_k(), block = std::max<int64_t>(1, budget.block_samples);
  const auto of_sample = static_cast<size_t>(budget.sequence_length * top_k);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(sizeof(RoutingId) * of_sample) * first_step * budget.global_samples);
  const GroupsOfTokens groups(module.grid, budget.sequence_length);
  const int gpus = std::max(1, plan.cluster.gpus_per_node);
  std::vector<int> nodes;
  for (int rank : GroupOf(module.grid, View::kExpert, {Axis::kEp}, module.grid.first_rank))
    nodes.push_back(rank / gpus);
  nodes.resize(static_cast<size_t>(std::max(1, module.grid.ep)), module.grid.first_rank / gpus);
  Counter counter(module, nodes, layer);
  std::vector<RoutingId> ids(of_sample);  // files are little-endian, as all machines that this runs on
  for (int64_t sample = 0; sample < steps * budget.global_samples; ++sample) {
    if (!file.read(reinterpret_cast<char*>(ids.data()), static_cast<std::streamsize>(sizeof(RoutingId) * of_sample)))
      return absl::UnavailableError(absl::StrCat("cannot read ", path));
    const int64_t in_block = sample % block;
    int lane = 0;
    while (SamplesOfLane(block, module.grid.dp, lane).end <= in_block) ++lane;
    const RoutingId* choice = ids.data();
    for (int64_t position = 0; position < budget.sequence_length; ++position) {
      const int group = groups.Of(lane, position);
      for (int64_t j = 0; j < top_k; ++j) counter.Add(group, *choice++);
    }
    if (in_block + 1 == block) counter.Fold();
  }
  counter.Finish();
  return absl::OkStatus();
}

}  // namespace

const LayerRows* ExpertRows::Find(std::string_view frame) const {
  const auto found =
      std::find_if(layers.begin(), layers.end(), [&](const LayerRows& layer) { return layer.frame == frame; });
  return found == layers.end() ? nullptr : &*found;
}

absl::StatusOr<ExpertRows> ReadExpertRows(const Plan& plan, const std::string& folder) {
  if (absl::Status fits = CheckReplayRouting(plan, 1, folder, "--routing"); !fits.ok()) return fits;
  ExpertRows rows;
  for (const Module& module : plan.modules) {
    const int64_t of_step = plan.budget.global_samples * plan.budget.sequence_length * module.top_k();
    for (const LayerSummary& layer : module.layers) {
      if (layer.expert_row < 0 || of_step <= 0) continue;
      const std::string path = RoutingPath(folder, layer.frame);
      std::error_code error;
      const auto recorded = static_cast<int64_t>(std::filesystem::file_size(path, error) / sizeof(RoutingId)) / of_step;
      const int64_t steps = std::clamp(kMostChoices / of_step, int64_t{1}, std::min(kMostSteps, recorded));
      rows.first_step = recorded - steps + 1, rows.last_step = recorded;
      LayerRows& counted = rows.layers.emplace_back();
      counted.frame = layer.frame;
      if (absl::Status status = CountLayer(plan, module, path, recorded - steps, steps, counted); !status.ok())
        return status;
    }
  }
  return rows;
}

}  // namespace planwright
