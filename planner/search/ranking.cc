#include "planner/search/ranking.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>

namespace planwright {
namespace {

// Candidates whose bound is above the fastest by more than this are cut. Those within may be smaller.
constexpr double kKept = 1.1;
constexpr size_t kMostOnFrontier = 12, kMostOthers = 8;
constexpr size_t kMostLookedAt = 20'000;  // nodes, for rows that are not shown yet
// The best of a node with such a bound is simulated at once: it cuts much of what follows.
constexpr double kMuchBetter = 0.97;
constexpr int kMostDives = 50;
// Simulations for what is listed beside the fastest, equal layouts and the frontier: so many, or such a part of those
// for the fastest if that is more.
constexpr int64_t kBeside = 100, kShareBeside = 15;

}  // namespace

bool Ranking::Stop() {
  if (!found_.interrupted && stopped_(counts_.timed)) found_.interrupted = true;
  return found_.interrupted;
}

double Ranking::MostSeconds() const { return kKept * Fastest(); }

void Ranking::Know(FoundLayout layout) {
  known_seconds_ = std::min(known_seconds_, layout.step.seconds);
  known_.push_back(std::move(layout));
}

void Ranking::Add(const OpenNode& node) {
  open_.Add(node);
  if (node.seconds < kMuchBetter * Fastest() && dives_ < kMostDives && !Stop()) {
    ++dives_;
    SimulateLeast(open_.Next());
  }
  Tidy();
}

void Ranking::Tidy() {
  if (open_.size() > kMostOpen) {
    counts_.time += open_.DropAbove(MostSeconds());
    if (open_.size() > kMostOpen / 2) {
      const double middle = open_.Middle();
      dropped_ += open_.DropAbove(middle);
      dropped_least_ = std::min(dropped_least_, middle);
    }
  }
  if (counts_.timed / 1000 != reported_) reported_ = counts_.timed / 1000, Report();
}

void Ranking::Decide(double unseen) {
  most_simulated_ = request_.simulations;
  while (!open_.empty() && open_.least() < Needed() && MayGoOn()) LookAt(open_.Next(), MostSeconds(), open_);
  const bool interrupted = found_.interrupted;
  found_.at_limit = !interrupted && !open_.empty() && open_.least() < Needed();
  // What is open has a bound, and so has what was dropped.
  const double least = std::min({open_.least(), dropped_least_, unseen, simulated_.Fastest()});
  proved_ = !interrupted && least >= std::min(Needed(), simulated_.Fastest());
  if (interrupted) SimulateLeastOnes();
  // They need not have come up.
  if (interrupted || found_.at_limit) TakeWhatIsKnown();
  found_.lower_bound = least == kInfinite ? 0 : std::min(least, simulated_.Fastest());
  found_.even = simulated_.empty() ? 0 : simulated_.Fastest();
}

Found Ranking::Finish() {
  const bool interrupted = found_.interrupted;
  most_simulated_ = counts_.simulated + std::max(kBeside, request_.simulations / kShareBeside);
  SimulateEquals();
  // Of both sorts, as either may be the faster.
  const size_t rows = LacksRows() ? request_.best - Rows().size() : 0;
  SimulateMovedRows(rows);
  SimulateOtherRows(rows);
  SimulateFrontier();
  found_.whole = simulated_.Sorted();
  found_.interrupted = interrupted;
  found_.most_seconds = MostSeconds();
  const double open = open_.candidates(), slower = open_.DropAbove(proved_ ? 0 : Fastest());
  counts_.time += slower, counts_.left += open - slower;
  (dropped_least_ >= Fastest() ? counts_.time : counts_.left) += dropped_;
  return std::move(found_);
}

void Ranking::Report() const {
  if (!request_.progress) return;
  request_.progress({.space = counts_.space,
                     .timed = counts_.timed,
                     .simulated = counts_.simulated,
                     .best = simulated_.empty() ? 0 : simulated_.Fastest()});
}

WholeStep Ranking::Simulate(const OpenNode& one) {
  FoundLayout found{source_.CandidateOf(one), {}};
  found.step = SimulateWhole(tuned_, found.candidate);
  const WholeStep step = found.step;
  ++counts_.simulated;
  ++(!step.valid ? counts_.rules : !step.fits ? counts_.memory : counts_.found);
  if (step.fits) simulated_.Add(std::move(found));
  Report();
  return step;
}

void Ranking::LookAt(const OpenNode& node, double most, OpenNodes& open) {
  if (node.level == OpenNode::Level::kOne) return void(Simulate(node));
  for (const OpenNode& part : source_.PartsOf(node, most)) open.Add(part);
}

void Ranking::SimulateLeast(OpenNode node) {
  while (node.level != OpenNode::Level::kOne) {
    std::vector<OpenNode> parts = source_.PartsOf(node, MostSeconds());
    if (parts.empty()) return;
    const auto least = std::min_element(parts.begin(), parts.end(), [](const OpenNode& a, const OpenNode& b) {
      return std::tie(a.seconds, a.memory) < std::tie(b.seconds, b.memory);
    });
    node = *least;
    parts.erase(least);
    for (const OpenNode& part : parts) open_.Add(part);
  }
  Simulate(node);
}

// Of a search that was stopped.
void Ranking::SimulateLeastOnes() {
  for (int tries = 0; tries < 3 && !open_.empty(); ++tries) SimulateLeast(open_.Next());
}

void Ranking::TakeWhatIsKnown() {
  for (FoundLayout& known : known_) simulated_.Add(std::move(known));
}

void Ranking::SimulateBetter(double within, double worth,
                             const std::function<Merit(Simplicity, double, int64_t)>& merit) {
  if (simulated_.empty() || Stop()) return;
  const double most = simulated_.Fastest() * (1 + within);
  std::optional<Merit> best;
  const auto take = [&](const FoundLayout& found) {
    if (found.step.seconds > most) return;
    const Merit its = merit(SimplicityOf(found.candidate), found.step.seconds, found.step.memory);
    if (!best || its < *best) best = its;
  };
  for (const FoundLayout& found : simulated_.layouts()) take(found);
  struct Open {
    Merit merit;
    OpenNode node;
  };
  const auto later = [](const Open& a, const Open& b) {
    return std::tie(a.merit, a.node.seconds, a.node.order) > std::tie(b.merit, b.node.seconds, b.node.order);
  };
  const auto of_node = [&](const OpenNode& node) {
    return Open{merit(source_.SimplicityOf(node), node.seconds, node.memory), node};
  };
  std::vector<Open> open;
  std::vector<OpenNode> left;
  for (const OpenNode& node : open_.TakeUpTo(most)) open.push_back(of_node(node));
  std::make_heap(open.begin(), open.end(), later);
  while (!open.empty() && MayGoOn()) {
    const Merit& next = open.front().merit;
    if (best && (next.simplicity > best->simplicity ||
                 (next.simplicity == best->simplicity && next.less + worth >= best->less)))
      break;
    std::pop_heap(open.begin(), open.end(), later);
    const OpenNode node = open.back().node;
    open.pop_back();
    if (node.level != OpenNode::Level::kOne) {
      for (const OpenNode& part : source_.PartsOf(node, MostSeconds())) {
        if (part.seconds > most) {
          left.push_back(part);
        } else {
          open.push_back(of_node(part)), std::push_heap(open.begin(), open.end(), later);
        }
      }
      continue;
    }
    const size_t before = simulated_.layouts().size();
    Simulate(node);
    if (simulated_.layouts().size() > before) take(simulated_.layouts().back());
  }
  for (const Open& one : open) left.push_back(one.node);
  open_.Reopen(left);
}

// Those that may come before the fastest, and the simplest layout that is shown in any case.
void Ranking::SimulateEquals() {
  const double equal = std::max(rule_.errors.same_grids, rule_.errors.other_grids);
  const bool simple = rule_.prefer == Preference::kSimple;
  const auto by_time = [](Simplicity simplicity, double seconds, int64_t) { return Merit{simplicity, seconds}; };
  if (equal > 0 && simple) SimulateBetter(equal, 0, by_time);
  if (equal > 0) {
    SimulateBetter(equal, static_cast<double>(rule_.worth), [&](Simplicity simplicity, double, int64_t memory) {
      return Merit{simple ? simplicity : Simplicity{}, static_cast<double>(memory)};
    });
  }
  SimulateBetter(kSimplestWithin, 0, by_time);
}

std::set<Candidate> Ranking::Rows() const {
  std::set<Candidate> rows;
  for (const FoundLayout& found : simulated_.layouts()) {
    if (found.step.seconds <= MostSeconds()) rows.insert(RowOf(found.candidate));
  }
  return rows;
}

bool Ranking::LacksRows() { return !simulated_.empty() && !Stop() && Rows().size() < request_.best; }

void Ranking::SimulateOtherRows(size_t most) {
  std::set<Candidate> tried = Rows();
  const size_t full = tried.size() + most;
  bool lacks = most > 0;
  std::vector<OpenNode> left;
  const std::vector<OpenNode> open = lacks ? open_.TakeUpTo(MostSeconds()) : std::vector<OpenNode>();
  for (size_t i = 0; i < open.size(); ++i) {
    if (lacks && i < kMostLookedAt && MayGoOn() && tried.insert(RowOf(source_.CandidateOf(open[i]))).second) {
      SimulateLeast(open[i]);
      lacks = Rows().size() < full;
    } else {
      left.push_back(open[i]);
    }
  }
  open_.Reopen(left);
}

// By the bounds, which are near: layouts that are smaller than all faster ones.
void Ranking::SimulateFrontier() {
  if (simulated_.empty() || Stop()) return;
  std::vector<OpenNode> open = open_.TakeUpTo(kInfinite);
  std::vector<size_t> smaller;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const FoundLayout& found : simulated_.layouts()) least = std::min(least, found.step.memory);
  for (size_t i = 0; i < open.size(); ++i) {
    // A hundredth less is not worth a line.
    if (static_cast<double>(open[i].memory) >= 0.99 * static_cast<double>(least)) continue;
    smaller.push_back(i);
    least = open[i].memory;
  }
  std::set<size_t> done;
  const size_t step = std::max<size_t>(1, (smaller.size() + kMostOnFrontier - 1) / kMostOnFrontier);
  for (size_t i = smaller.size(); i > 0 && MayGoOn(); i -= std::min(i, step)) {
    SimulateLeast(open[smaller[i - 1]]);
    done.insert(smaller[i - 1]);
  }
  FindOthers(open);
  std::vector<OpenNode> left;
  for (size_t i = 0; i < open.size(); ++i) {
    if (!done.contains(i)) left.push_back(open[i]);
  }
  open_.Reopen(left);
}

// `open`: by time.
void Ranking::FindOthers(const std::vector<OpenNode>& open) {
  std::set<std::vector<std::array<int64_t, 7>>> seen;
  const auto add = [&](Candidate candidate) {
    if (seen.insert(GridsOf(candidate)).second) found_.others.push_back(std::move(candidate));
  };
  for (const FoundLayout& found : simulated_.Sorted()) {
    if (found_.others.size() < kMostOthers) add(found.candidate);
  }
  for (const OpenNode& node : open) {
    if (found_.others.size() < kMostOthers) add(source_.CandidateOf(node));
  }
}

}  // namespace planwright
