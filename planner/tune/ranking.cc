#include "planner/tune/ranking.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

namespace planwright {
namespace {

// Candidates whose bound is above the fastest by more than this are cut. Those within may be smaller.
constexpr double kKept = 1.1;
constexpr size_t kMostOpen = 500'000, kMostOnFrontier = 12, kMostOthers = 8;
constexpr double kMuchBetter = 0.9;  // a candidate with such a bound is simulated at once
constexpr int kMostDives = 50;

}  // namespace

bool Ranking::Stop() {
  if (!found_.interrupted && stopped_(found_.counts.timed)) found_.interrupted = true;
  return found_.interrupted;
}

double Ranking::MostSeconds() const { return std::max(kKept, 1 + error_) * Fastest(); }

void Ranking::Know(FoundLayout layout) {
  known_seconds_ = std::min(known_seconds_, layout.step.seconds);
  known_.push_back(std::move(layout));
}

void Ranking::Add(TimedCandidate candidate) {
  const double seconds = candidate.seconds;
  open_.Add(candidate);
  // A much better one cuts much of what follows.
  if (seconds < kMuchBetter * Fastest() && dives_ < kMostDives) ++dives_, Simulate(open_.Next());
}

void Ranking::SimulateFaster() {
  for (int tries = 0; tries < 4 && !open_.empty() && open_.least() < Fastest() && !Stop(); ++tries)
    Simulate(open_.Next());
}

void Ranking::Tidy() {
  if (open_.size() > kMostOpen) {
    found_.counts.time += static_cast<double>(open_.DropAbove(MostSeconds()));
    // Of too many, those stay that may be among the best.
    if (open_.size() > kMostOpen / 2) found_.counts.time += static_cast<double>(open_.DropAbove(Needed()));
  }
  if (found_.counts.timed / 1000 != reported_) reported_ = found_.counts.timed / 1000, Report();
}

Found Ranking::Finish() {
  const bool complete = !found_.interrupted;
  while (!open_.empty() && open_.least() < Needed() && !Stop()) Simulate(open_.Next());
  const bool proved = !found_.interrupted;
  if (!proved) TakeWhatIsKnown();
  SimulateEquals();
  SimulateFrontier();
  found_.whole = simulated_.Sorted();
  // What is open has a bound; what was not reached has none.
  if (complete)
    found_.lower_bound = open_.empty() ? simulated_.Fastest() : std::min(simulated_.Fastest(), open_.least());
  if (found_.whole.empty()) found_.lower_bound = 0;
  found_.interrupted = !proved;
  found_.most_seconds = MostSeconds();
  const double open = static_cast<double>(open_.size()), slower = static_cast<double>(open_.DropAbove(Fastest()));
  found_.counts.time += proved ? open : slower;
  found_.counts.left += proved ? 0 : open - slower;
  return std::move(found_);
}

void Ranking::Report() const {
  if (!request_.progress) return;
  request_.progress({.space = found_.counts.space,
                     .timed = found_.counts.timed,
                     .simulated = found_.counts.simulated,
                     .best = simulated_.empty() ? 0 : simulated_.Fastest()});
}

WholeStep Ranking::Simulate(const TimedCandidate& timed) {
  FoundLayout found{CandidateOfTimed(timed), {}};
  found.step = SimulateWhole(tuned_, found.candidate);
  const WholeStep step = found.step;
  TuneCounts& counts = found_.counts;
  ++counts.simulated;
  ++(!step.valid ? counts.rules : !step.fits ? counts.memory : counts.found);
  if (step.fits) simulated_.Add(std::move(found));
  Report();
  return step;
}

// Of a search that was stopped: what was known before it, and those with the least bounds.
void Ranking::TakeWhatIsKnown() {
  for (int tries = 0; tries < 3 && !open_.empty(); ++tries) Simulate(open_.Next());
  for (FoundLayout& known : known_) simulated_.Add(std::move(known));
}

// Of those that are as fast as the fastest, within the error of the times, the ones with the least memory.
void Ranking::SimulateEquals() {
  if (!(error_ > 0) || simulated_.empty() || Stop()) return;
  const double most = simulated_.Fastest() * (1 + error_);
  std::vector<int64_t> memory;
  for (const FoundLayout& found : simulated_.layouts()) {
    if (found.step.seconds <= most) memory.push_back(found.step.memory);
  }
  std::sort(memory.begin(), memory.end());
  std::vector<TimedCandidate> open = open_.TakeUpTo(most);
  std::stable_sort(open.begin(), open.end(),
                   [](const TimedCandidate& a, const TimedCandidate& b) { return a.memory < b.memory; });
  size_t next = 0;
  for (; next < open.size() && !Stop(); ++next) {
    if (memory.size() >= request_.best && open[next].memory >= memory[request_.best - 1]) break;
    const size_t before = simulated_.layouts().size();
    const WholeStep step = Simulate(open[next]);
    if (simulated_.layouts().size() > before && step.seconds <= most)
      memory.insert(std::upper_bound(memory.begin(), memory.end(), step.memory), step.memory);
  }
  open.erase(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(next));
  open_.Reopen(open);
}

// By the bounds, which are near: layouts that are smaller than all faster ones.
void Ranking::SimulateFrontier() {
  if (simulated_.empty() || Stop()) return;
  std::vector<TimedCandidate> open = open_.TakeUpTo(std::numeric_limits<double>::infinity());
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
  for (size_t i = smaller.size(); i > 0 && !Stop(); i -= std::min(i, step)) {
    Simulate(open[smaller[i - 1]]);
    done.insert(smaller[i - 1]);
  }
  FindOthers(open);
  std::vector<TimedCandidate> left;
  for (size_t i = 0; i < open.size(); ++i) {
    if (!done.contains(i)) left.push_back(open[i]);
  }
  open_.Reopen(left);
}

// `open`: by time.
void Ranking::FindOthers(const std::vector<TimedCandidate>& open) {
  std::set<std::vector<std::array<int64_t, 7>>> seen;
  const auto add = [&](Candidate candidate) {
    if (seen.insert(GridsOf(candidate)).second) found_.others.push_back(std::move(candidate));
  };
  for (const FoundLayout& found : simulated_.Sorted()) {
    if (found_.others.size() < kMostOthers) add(found.candidate);
  }
  for (const TimedCandidate& timed : open) {
    if (found_.others.size() < kMostOthers) add(CandidateOfTimed(timed));
  }
}

}  // namespace planwright
