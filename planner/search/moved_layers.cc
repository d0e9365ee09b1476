// The part of Ranking for layouts with other layers in their stages than those that differ by at most one.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "planner/search/ranking.h"

namespace planwright {
namespace {

// After so much the gap is told instead of closed.
constexpr int64_t kMostSimulated = 200, kMostTimed = 200'000;
// Ways of which one candidate is simulated, before those of all are in the order of their bounds.
constexpr int64_t kTries = 60;
// For each row of the table that is lacking, so many others are tried at most.
constexpr size_t kTriesOfRow = 30;

bool IsOneWay(const OpenNode& node) {
  return node.level == OpenNode::Level::kModules || node.level == OpenNode::Level::kOne;
}

bool SameSteps(const StepChoice& a, const StepChoice& b) {
  return a.buckets == b.buckets && a.overlap_reduce == b.overlap_reduce && a.overlap_gather == b.overlap_gather;
}

}  // namespace

void Ranking::AddMoved(const OpenNode& node) {
  moved_.Add(node);
  if (moved_.size() <= kMostOpen) return;
  const double middle = moved_.Middle();
  moved_.DropAbove(middle);
  moved_dropped_ = std::min(moved_dropped_, middle);
}

// Bounds are nearest where gradients are not reduced beside other work. So the fastest step is that of the fastest
// layout rather than that with the least bound.
void Ranking::TryMoved() {
  std::vector<OpenNode> later;
  std::optional<StepChoice> like;
  if (!simulated_.empty()) like = simulated_.Sorted().front().candidate.step;
  uint32_t fastest_layouts = 0;
  bool faster = false;
  for (const int64_t most = counts_.simulated + kTries; counts_.simulated < most && MayGoOnMoved();) {
    OpenNode node = moved_.Next();
    bool ends = false;
    while (node.level != OpenNode::Level::kOne && !ends) {
      const std::vector<OpenNode> parts = source_.PartsOf(node, Fastest());
      ends = true;
      if (!IsOneWay(node)) {
        // All ways are looked at in the order of their bounds; of one way, the best layouts of other modules.
        const OpenNode* least = nullptr;
        for (const OpenNode& part : parts) {
          if (IsOneWay(part) && (!least || part.seconds < least->seconds)) least = &part;
        }
        for (const OpenNode& part : parts) {
          if (IsOneWay(part) && &part != least) later.push_back(part);
          if (!IsOneWay(part)) moved_.Add(part);
        }
        if (least) node = *least, ends = false;
        continue;
      }
      const OpenNode* chosen = nullptr;
      for (const OpenNode& part : parts) {
        if (!chosen && (!like || SameSteps(source_.CandidateOf(part).step, *like))) chosen = &part;
      }
      for (const OpenNode& part : parts) {
        if (&part != chosen) later.push_back(part);
      }
      if (chosen) node = *chosen, ends = false;
    }
    if (node.level != OpenNode::Level::kOne) continue;
    const double before = Fastest();
    Simulate(node);
    if (Fastest() < before) fastest_layouts = node.layouts, faster = true;
  }
  for (const OpenNode& node : later) {
    if (faster && node.level == OpenNode::Level::kOne && node.layouts == fastest_layouts && MayGoOn()) {
      Simulate(node);
    } else {
      moved_.Add(node);
    }
  }
}

void Ranking::DecideMoved(bool all) {
  const TuneCounts before = counts_;  // these count apart
  most_simulated_ = counts_.simulated + std::min(kMostSimulated, request_.simulations),
  most_timed_ = counts_.timed + kMostTimed;
  TryMoved();
  while (MayGoOnMoved()) LookAt(moved_.Next(), Fastest(), moved_);
  found_.moved_timed = counts_.timed - before.timed, found_.moved_simulated = counts_.simulated - before.simulated;
  counts_ = before;
  found_.moved_all = all;
  const double least = std::min({moved_.least(), moved_dropped_, source_.LeftOut(), simulated_.Fastest()});
  if (all && least < kInfinite) found_.moved_bound = least;
}

// Of each row the way with the least bound, and of that one layout.
void Ranking::SimulateMovedRows(size_t most) {
  if (rows_.empty() || most == 0) return;
  const TuneCounts before = counts_;
  std::set<Candidate> tried = Rows();
  const size_t full = tried.size() + most;
  const StepChoice like = simulated_.Sorted().front().candidate.step;
  for (size_t tries = 0; tries < kTriesOfRow * most && !rows_.empty() && Rows().size() < full && MayGoOn();) {
    OpenNode node = rows_.Next();
    if (node.seconds > MostSeconds()) break;
    if (!tried.insert(RowOf(source_.CandidateOf(node))).second) continue;
    ++tries;
    for (bool goes_on = true; goes_on && node.level != OpenNode::Level::kOne;) {
      const std::vector<OpenNode> parts = source_.PartsOf(node, MostSeconds());
      const auto rank = [&](const OpenNode& part) {
        const bool rest = part.level == OpenNode::Level::kSplits;  // ways of larger bounds
        const bool other = part.level == OpenNode::Level::kOne && !SameSteps(source_.CandidateOf(part).step, like);
        return std::tuple(rest, other, part.seconds);
      };
      const auto least = std::min_element(parts.begin(), parts.end(),
                                          [&](const OpenNode& a, const OpenNode& b) { return rank(a) < rank(b); });
      goes_on = least != parts.end() && !Stop();
      if (goes_on) node = *least;
    }
    if (node.level == OpenNode::Level::kOne) Simulate(node);
  }
  found_.moved_timed += counts_.timed - before.timed, found_.moved_simulated += counts_.simulated - before.simulated;
  counts_ = before;
}

}  // namespace planwright
