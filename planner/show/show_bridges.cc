#include <algorithm>
#include <map>

#include "planner/show/show.h"
#include "planner/show/table.h"

namespace planwright {
namespace {

constexpr size_t kMostRows = 40;

// What one rank sends or gets in a microbatch: its partners, and how many samples go to each.
struct Fan {
  std::vector<int> partners;
  int64_t first = 0, end = 0, least = 0, most = 0;
};

// By the side that has fewer ranks: every sender with its receivers, or every receiver with its senders.
std::map<int, Fan> FansOf(const Bridge& bridge, bool by_sender) {
  std::map<int, Fan> fans;
  for (const Transfer& transfer : bridge.forward) {
    const auto [it, fresh] = fans.try_emplace(by_sender ? transfer.from_rank : transfer.to_rank);
    Fan& fan = it->second;
    const int64_t samples = transfer.end_sample - transfer.first_sample;
    fan.partners.push_back(by_sender ? transfer.to_rank : transfer.from_rank);
    fan.first = fresh ? transfer.first_sample : std::min(fan.first, transfer.first_sample);
    fan.end = std::max(fan.end, transfer.end_sample);
    fan.least = fresh ? samples : std::min(fan.least, samples);
    fan.most = std::max(fan.most, samples);
  }
  for (auto& [rank, fan] : fans) std::sort(fan.partners.begin(), fan.partners.end());
  return fans;
}

std::string RangeText(int64_t first, int64_t end) { return "[" + WithCommas(first) + ", " + WithCommas(end) + ")"; }

std::string BridgeText(const Plan& plan, const Bridge& bridge, size_t width) {
  int64_t samples = 0;
  for (const Transfer& transfer : bridge.forward) samples = std::max(samples, transfer.end_sample);
  const std::string transfers = Counted(static_cast<int64_t>(bridge.forward.size()), "transfer") + " a microbatch of " +
                                Counted(samples, "sample");
  std::string text =
      Wrapped(bridge.from + " ──▶ " + bridge.to + "   " + bridge.kind + ", " + transfers, width, 2) + "\n";
  if (const Module* from = plan.FindModule(bridge.from), *to = plan.FindModule(bridge.to); from && to) {
    text += "  " + WithCommas(from->grid.dp) + " lanes of tp" + std::to_string(from->grid.tp) + " ──▶ " +
            WithCommas(to->grid.dp) + " lanes of tp" + std::to_string(to->grid.tp) + "\n";
  }
  const std::map<int, Fan> by_sender = FansOf(bridge, true), by_receiver = FansOf(bridge, false);
  const bool senders = by_sender.size() <= by_receiver.size();
  const std::map<int, Fan>& fans = senders ? by_sender : by_receiver;
  Table table(senders ? std::vector<std::string>{"rank", "samples", "", "to ranks", "samples each"}
                      : std::vector<std::string>{"rank", "samples", "", "from ranks", "samples each"});
  size_t rows = 0;
  for (const auto& [rank, fan] : fans) {
    if (rows++ == kMostRows) break;
    table.Add({std::to_string(rank), RangeText(fan.first, fan.end), senders ? "──▶" : "◀──", RanksText(fan.partners),
               fan.least == fan.most ? WithCommas(fan.least) : WithCommas(fan.least) + " to " + WithCommas(fan.most)});
  }
  text += table.Text("  ", width);
  if (fans.size() > kMostRows)
    text += "  (and " + WithCommas(static_cast<int64_t>(fans.size() - kMostRows)) + " more ranks; --json has all)\n";
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
