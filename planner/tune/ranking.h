// Candidates that may be among the best: those that were timed from blocks, in the order of their bounds, and those
// that were simulated whole (docs/decisions/0025-tune.md).
#pragma once

#include <functional>
#include <vector>

#include "planner/tune/found_layouts.h"
#include "planner/tune/open_candidates.h"
#include "planner/tune/search.h"
#include "planner/tune/tune.h"

namespace planwright {

class Ranking {
 public:
  using CandidateAt = std::function<Candidate(const TimedCandidate&, const OpenCandidates::Layout*)>;

  // `error`, `stopped`: as SearchSpace has them. `candidate_at`: the candidate of indices.
  Ranking(const TuneRequest& request, const TunedRecipe& tuned, double error,
          const std::function<bool(int64_t timed)>& stopped, CandidateAt candidate_at)
      : request_(request), tuned_(tuned), error_(error), stopped_(stopped), candidate_at_(std::move(candidate_at)),
        simulated_(tuned) {}

  // True once the search is to end with what it has.
  bool Stop();
  // Seconds of the fastest that is known; infinite: none is.
  double Fastest() const { return std::min(known_seconds_, simulated_.Fastest()); }
  // A bound above this is cut. Slower ones than the fastest may be smaller, or equal within the error.
  double MostSeconds() const;

  // A candidate that will come up in the space once more.
  void Know(FoundLayout layout);
  uint32_t AddLayouts(const std::vector<OpenCandidates::Layout>& layouts) { return open_.AddLayouts(layouts); }
  // One that was timed, with a bound up to MostSeconds. Much better ones are simulated at once.
  void Add(TimedCandidate candidate);
  // Simulates a few of those with bounds below the fastest.
  void SimulateFaster();
  // Drops what cannot be among the best any more, if there is much; tells how far the search is.
  void Tidy();

  // All have been added, or the search was stopped: simulates what may be among the best.
  Found Finish();

  TuneCounts& counts() { return found_.counts; }

 private:
  // Below this a candidate may be one of those that are wanted.
  double Needed() const { return simulated_.Fastest(std::max<size_t>(1, request_.best) - 1); }
  Candidate CandidateOfTimed(const TimedCandidate& timed) const { return candidate_at_(timed, open_.layouts(timed)); }
  void Report() const;
  // Returns what the whole plan says.
  WholeStep Simulate(const TimedCandidate& timed);
  void TakeWhatIsKnown();
  void SimulateEquals();
  void SimulateFrontier();
  void FindOthers(const std::vector<TimedCandidate>& open);

  const TuneRequest& request_;
  const TunedRecipe& tuned_;
  const double error_;
  const std::function<bool(int64_t)>& stopped_;
  const CandidateAt candidate_at_;
  OpenCandidates open_;
  FoundLayouts simulated_;
  std::vector<FoundLayout> known_;
  double known_seconds_ = std::numeric_limits<double>::infinity();  // of a candidate, before it comes up in the space
  int64_t reported_ = 0;
  int dives_ = 0;
  Found found_;
};

}  // namespace planwright
