// What a trial (`plan launch --try`) asks of its ranks, and what each of them tells: RUN/trial (docs/trials.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// RUN/trial/files.json, which the planner writes and all ranks get by `--try`: what the first rank of each node reads.
struct TrialFiles {
  std::vector<std::string> paths;  // absolute
  int64_t left_out = 0;            // further ones, of which none is looked at
};
std::string TrialFilesPath(const std::string& run_dir);
std::string TrialFilesJson(const TrialFiles& files);
// InvalidArgument if the text is not of TrialFilesJson.
absl::StatusOr<TrialFiles> ReadTrialFiles(std::string_view text);

// RUN/trial/rounds.json: the communications that ranks time after the steps of a trial (communication_rounds.h).
std::string TrialRoundsPath(const std::string& run_dir);

struct TriedFile {
  int64_t bytes = 0;
  std::string problem;  // why it cannot be read; empty: its first and its last bytes were read
  bool operator==(const TriedFile&) const = default;
};

// RUN/trial/rank0003.json, which a rank writes when it begins, when it is ready, and when it is done.
struct RankTrial {
  int rank = 0;
  std::string host;
  double ready = 0;         // when its first step could begin, in seconds since 1970; 0: it did not come so far
  double start_up = 0;      // seconds from the begin of its process until then
  std::string start_parts;  // where they went: "program 1.0, plan 0.1, ..."
  // Bytes of its GPU, when it had made its context there: all, and those that nobody had taken. 0: it is a CPU rank.
  int64_t device_total = 0, device_free = 0;
  int64_t host_available = 0;    // of its node's memory when it began, in bytes; 0: the system does not tell
  int64_t resident = 0;          // the most that its process held when it was done, in bytes; 0: it is not
  std::vector<TriedFile> files;  // as TrialFiles::paths, of the first rank of a node
  bool operator==(const RankTrial&) const = default;
};
std::string RankTrialPath(const std::string& run_dir, int rank);
std::string RankTrialJson(const RankTrial& trial);
// InvalidArgument if the text is not of RankTrialJson.
absl::StatusOr<RankTrial> ReadRankTrial(std::string_view text);

// A trial does so many steps: the first one warms up (libraries load, kernels are chosen, memory is taken), and the
// time of the second is that of later ones.
inline constexpr int64_t kTrialSteps = 2;

}  // namespace planwright
