// What the launcher asks of a program that it starts once for several ranks (docs/decisions/0028-ranks-are-forked.md).
// It travels in an environment variable, as numbers alone.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace planwright {

inline constexpr char kForkVariable[] = "PLANWRIGHT_FORK_RANKS";

struct ForkedRank {
  int rank = 0, local_rank = 0;
  int output = 1, errors = 2;  // open descriptors, which become its standard output and standard error
};

struct ForkRequest {
  int launcher = 0;  // process id
  int tell = -1;     // write end of a pipe: a ToldRank of each rank, as soon as it leads its process group
  int go = -1;       // read end of a pipe: a byte for each rank, once all are processes of the launcher
  std::vector<ForkedRank> ranks;
};

// What a rank tells the launcher. It closes the pipe then, so at its end all that were forked have told.
struct ToldRank {
  int local_rank = 0, process = 0;
};

std::string ForkRequestText(const ForkRequest& request);
// InvalidArgument if it is not what ForkRequestText writes.
absl::StatusOr<ForkRequest> ReadForkRequest(absl::string_view text);

}  // namespace planwright
