// Communications that ranks time again and again after their steps, for `plan measure` (docs/measure.md). The planner
// writes which ones into a file that all ranks read, so all of them time the same ones in the same order. Each rank
// writes its times into RUN/rounds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/instruction.h"

namespace planwright {

// One communication in all groups of one shape at the same time: nodes and the places on each are cut into consecutive
// parts, and a group has the same places on some nodes. Ranks that are left over take no part.
struct CommunicationRound {
  OpKind kind{};                // of class communication
  int per_node = 2, nodes = 1;  // of a group; together at least 2 members, of an exchange exactly 2
  int64_t bytes = 0;            // of the whole value, as of CommunicationUse (planner/predict/rates/uses.h)
  // Each batch is one communication that is not timed, so that all members are there, and `repetitions` in a row. Where
  // they would take too long, the members agree on fewer (executor/rank/time_communications.cc).
  int64_t batches = 1, repetitions = 1;

  int members() const { return per_node * nodes; }
  bool operator==(const CommunicationRound&) const = default;
};

struct CommunicationRounds {
  int ranks_per_node = 1;  // rank R is on node R / ranks_per_node
  std::vector<CommunicationRound> list;
};

inline constexpr size_t kMostRounds = 10000;

// The members of a rank's group, ascending; empty if it takes no part.
std::vector<int> MembersOf(const CommunicationRound& round, int rank, int world_size, int ranks_per_node);

std::string RoundsJson(const CommunicationRounds& rounds);
// InvalidArgument if the text is not of RoundsJson, or a round cannot be run.
absl::StatusOr<CommunicationRounds> ReadRounds(std::string_view text);

// RUN/rounds/rank0003.json: of each round, the seconds of one communication in each batch; none where the rank took no
// part.
std::string RoundTimesPath(const std::string& run_dir, int rank);
std::string RoundTimesJson(const std::vector<std::vector<double>>& seconds);
// InvalidArgument if the text is not of RoundTimesJson for so many rounds.
absl::StatusOr<std::vector<std::vector<double>>> ReadRoundTimes(std::string_view text, size_t rounds);

}  // namespace planwright
