#include "planner/predict/estimate/dispatch_time.h"

#include <algorithm>

#include "planner/predict/estimate/communication_uses.h"

namespace planwright {
namespace {

// The ep group that is spread over most nodes: a layer waits for it.
Members WidestGroup(const Grid& grid, int gpus_per_node) {
  Members widest;
  for (int rank = grid.first_rank; rank < grid.first_rank + grid.ranks(); ++rank) {
    if (CoordinateOf(grid, rank, Axis::kEp) != 0) continue;
    const Members members = MembersAmong(GroupOf(grid, View::kExpert, {Axis::kEp}, rank), std::max(1, gpus_per_node));
    if (members.nodes > widest.nodes || widest.all == 1) widest = members;
  }
  return widest;
}

// Adds up the seconds of instructions, by their bytes.
class Sum {
 public:
  Sum(const Rates& rates, const Members& members, DType dtype) : rates_(rates), members_(members), dtype_(dtype) {}

  Sum& Send(OpKind kind, double bytes) {
    seconds_ += rates_.Communication({kind, bytes, members_.all, members_.on_fullest_node, members_.nodes}).seconds;
    return *this;
  }
  Sum& Compute(OpKind kind, double bytes) {
    seconds_ += rates_.Compute({.kind = kind, .bytes = bytes, .dtype = dtype_}).seconds;
    return *this;
  }
  double seconds() const { return seconds_; }

 private:
  const Rates& rates_;
  const Members& members_;
  const DType dtype_;
  double seconds_ = 0;
};

}  // namespace

DispatchSizes DispatchSizesOf(const Module& module, const Budget& budget, const Cluster& cluster, DType dtype) {
  const int64_t cut = std::max(1, module.grid.tp * module.grid.cp);
  return {std::max<int64_t>(1, budget.micro_samples * budget.sequence_length / cut), dtype, cluster.gpus_per_node};
}

DispatchTime TimeDispatch(const Module& module, const DispatchSizes& sizes, const Rates& rates,
                          const std::string& dispatch) {
  const double ep = module.grid.ep, k = static_cast<double>(module.top_k());
  // A row of each choice goes to another rank with probability (ep - 1) / ep, and its result comes back. A token that
  // is gathered goes to ep - 1 ranks. As many terms of its sum come back, and they are wide: `term` rows each.
  const bool gathers = dispatch == "all_gather";
  const double term = sizes.dtype == DType::kBf16 ? 2 : 1;
  DispatchTime time = {.rows = gathers ? (1 + term) * (ep - 1) : 2 * k * (ep - 1) / ep};
  if (!rates.known()) return time;
  const auto tokens = static_cast<double>(sizes.tokens), width = static_cast<double>(DTypeBytes(sizes.dtype));
  const double row = static_cast<double>(module.size("hidden")) * width, rows = tokens * k * row,
               all = tokens * ep * row;
  const double weights = tokens * k * width * term, ids = tokens * k * 8;  // int64
  const Members members = WidestGroup(module.grid, sizes.gpus_per_node);
  Sum sum(rates, members, sizes.dtype);
  // As a layer has them, without the counts, which both send.
  if (gathers) {
    sum.Send(OpKind::kGatherTokens, all)
        .Send(OpKind::kGatherTokens, ep * weights)
        .Send(OpKind::kGatherTokens, ep * ids);
    sum.Compute(OpKind::kSelectRows, all + rows).Compute(OpKind::kCombineRows, rows + term * all);
    sum.Send(OpKind::kScatterTokens, term * all);
  } else {
    sum.Compute(OpKind::kPermuteRows, tokens * row + rows).Send(OpKind::kAllToAllV, rows);
    sum.Send(OpKind::kAllToAllV, weights).Send(OpKind::kAllToAllV, rows);
    sum.Compute(OpKind::kUnpermuteRows, rows + tokens * row);
  }
  time.seconds = sum.seconds() / tokens;
  return time;
}

Rates DispatchRates(const Cluster& cluster) {
  Cluster sheet = cluster;
  sheet.profile = {};
  return RatesOf(sheet);
}

std::string DispatchOf(const Module& module, const std::string& wanted, const DispatchSizes& sizes,
                       const Rates& rates) {
  if (module.expert_layers() == 0 || module.grid.ep == 1) return "all_to_all";
  if (wanted != "auto") return wanted;
  const double gathered = TimeDispatch(module, sizes, rates, "all_gather").seconds;
  return gathered < TimeDispatch(module, sizes, rates, "all_to_all").seconds ? "all_gather" : "all_to_all";
}

}  // namespace planwright
