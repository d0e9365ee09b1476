// Slurm's short form of node names, as in SLURM_JOB_NODELIST.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

inline constexpr size_t kMostNodes = 1 << 20;

// "n[00-02,7],gpu4-ib" -> n00, n01, n02, n7, gpu4-ib, in that order. Several brackets in a name multiply:
// "r[1-2]n[1-2]". InvalidArgument if a bracket is not closed, a range goes down or is no number, or the list names more
// than kMostNodes.
absl::StatusOr<std::vector<std::string>> ExpandNodeList(std::string_view list);

}  // namespace planwright
