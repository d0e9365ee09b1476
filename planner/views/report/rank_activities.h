// Where the ranks of a run are, folded: ranks at the same instruction are one line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "planner/views/report/run_report.h"

namespace planwright {

struct RankActivity {
  // In the order in which they are listed.
  enum class What { kFailed, kComputes, kStores, kWaits, kBetween, kUnknown, kStarting, kSilent, kDone };
  What what = What::kSilent;
  std::string where;       // the instruction with its calls, or the message of a rank that failed; may be empty
  std::vector<int> ranks;  // ascending
  // How long they have been there: those that came last and first, in seconds, by the clocks of this machine and of
  // theirs. nullopt: unknown.
  std::optional<double> least, most;
};

// "computes", "waits for others", ...
const char* WhatText(RankActivity::What what);

// By kind; within a kind, the longest first.
std::vector<RankActivity> FoldRanks(const std::vector<RankReport>& ranks, absl::Time now);

// The rank that the others wait for: of those that need no other rank, the one that has been longest at its
// instruction. nullopt: no rank waits, or all do.
struct SlowestRank {
  int rank = 0;
  double seconds = 0;  // at its instruction
  int waiting = 0;     // ranks
  std::string where;
};
std::optional<SlowestRank> FindSlowest(const std::vector<RankReport>& ranks, absl::Time now);

}  // namespace planwright
