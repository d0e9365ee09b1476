#include <algorithm>
#include <map>

#include "planner/base/paper/table.h"
#include "planner/plan/ranks_text.h"
#include "planner/views/show/show.h"

namespace planwright {
namespace {

constexpr size_t kMostRows = 40;  // of the table of one bridge

// What one rank sends or receives in a microbatch.
struct TransferSummary {
  std::vector<int> partners;     // ascending
  int64_t first = 0, end = 0;    // its samples [first, end) of the microbatch
  int64_t fewest = 0, most = 0;  // samples of one partner
};

// Each sender with its receivers, or each receiver with its senders.
std::map<int, TransferSummary> SummarizeByRank(const Bridge& bridge, bool by_sender) {
  std::map<int, TransferSummary> summaries;
  for (const Transfer& transfer : bridge.forward) {
    const auto [it, fresh] = summaries.try_emplace(by_sender ? transfer.from_rank : transfer.to_rank);
    TransferSummary& summary = it->second;
    const int64_t samples = transfer.end_sample - transfer.first_sample;
    summary.partners.push_back(by_sender ? transfer.to_rank : transfer.from_rank);
    summary.first = fresh ? transfer.first_sample : std::min(summary.first, transfer.first_sample);
    summary.end = std::max(summary.end, transfer.end_sample);
    summary.fewest = fresh ? samples : std::min(summary.fewest, samples);
    summary.most = std::max(summary.most, samples);
  }
  for (auto& [rank, summary] : summaries) std::sort(summary.partners.begin(), summary.partners.end());
  return summaries;
}

std::string RangeText(int64_t first, int64_t end) { return "[" + WithCommas(first) + ", " + WithCommas(end) + ")"; }

std::string BridgeText(const Plan& plan, const Bridge& bridge, size_t width) {
  int64_t samples = 0;  // of a microbatch: where the last transfer ends
  for (const Transfer& transfer : bridge.forward) samples = std::max(samples, transfer.end_sample);
  const std::string transfers = Counted(static_cast<int64_t>(bridge.forward.size()), "transfer") + " a microbatch of " +
                                Counted(samples, "sample");
  std::string text =
      Wrapped(bridge.from + " ──▶ " + bridge.to + "   " + bridge.kind + ", " + transfers, width, 2) + "\n";
  if (const Module* from = plan.FindModule(bridge.from), *to = plan.FindModule(bridge.to); from && to) {
    text += "  " + WithCommas(from->grid.dp) + " lanes of tp" + std::to_string(from->grid.tp) + " ──▶ " +
            WithCommas(to->grid.dp) + " lanes of tp" + std::to_string(to->grid.tp) + "\n";
  }
  // By the side with fewer ranks: a bridge that fans out has few senders, one that fans in few receivers.
  const std::map<int, TransferSummary> by_sender = SummarizeByRank(bridge, true),
                                       by_receiver = SummarizeByRank(bridge, false);
  const bool senders = by_sender.size() <= by_receiver.size();
  const std::map<int, TransferSummary>& shown = senders ? by_sender : by_receiver;
  Table table(senders ? std::vector<std::string>{"rank", "samples", "", "to ranks", "samples each"}
                      : std::vector<std::string>{"rank", "samples", "", "from ranks", "samples each"});
  size_t rows = 0;
  for (const auto& [rank, summary] : shown) {
    if (rows++ == kMostRows) break;
    table.Add({std::to_string(rank), RangeText(summary.first, summary.end), senders ? "──▶" : "◀──",
               RanksText(summary.partners),
               summary.fewest == summary.most ? WithCommas(summary.fewest)
                                              : WithCommas(summary.fewest) + " to " + WithCommas(summary.most)});
  }
  text += table.Text("  ", width);
  if (shown.size() > kMostRows)
    text += "  (and " + WithCommas(static_cast<int64_t>(shown.size() - kMostRows)) + " more ranks; --json has all)\n";
  return text;
}

}  // namespace

std::string ShowBridges(const Plan& plan, size_t width) {
  if (plan.bridges.empty()) return "no bridges\n";
  std::string text;
  for (const Bridge& bridge : plan.bridges) text += (text.empty() ? "" : "\n") + BridgeText(plan, bridge, width);
  return text;
}

nlohmann::ordered_json ShowBridgesJson(const Plan& plan) {
  using Json = nlohmann::ordered_json;
  // A plan stores both directions, so both are listed.
  auto transfers = [](const std::vector<Transfer>& list) {
    Json json = Json::array();
    for (const Transfer& transfer : list) {
      json.push_back({{"from_rank", transfer.from_rank},
                      {"to_rank", transfer.to_rank},
                      {"microbatch_samples", {transfer.first_sample, transfer.end_sample}}});
    }
    return json;
  };
  Json bridges = Json::array();
  for (const Bridge& bridge : plan.bridges) {
    bridges.push_back({{"from", bridge.from},
                       {"to", bridge.to},
                       {"kind", bridge.kind},
                       {"transfers", transfers(bridge.forward)},
                       {"gradient_transfers", transfers(bridge.backward)}});
  }
  return {{"bridges", std::move(bridges)}};
}

}  // namespace planwright
