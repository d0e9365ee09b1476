// `plan export`: the weights of a checkpoint as a Hugging Face folder (docs/hugging_face.md#what-comes-home).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/exchange/findings.h"
#include "planner/exchange/write_folder.h"
#include "planner/plan/instruction.h"
#include "planner/state/dialect/dialect.h"

namespace planwright {

inline constexpr int64_t kShardBytes = 5'000'000'000;

struct ExportRequest {
  std::string from;                    // a checkpoint, or a run directory, which means its newest one
  std::string to;                      // a folder that does not exist, or is empty
  std::string like;                    // SOURCE; empty: none
  std::set<std::string> ignored;       // keys of SOURCE's config.json that may stay unread
  std::string module;                  // the one module to export; empty: all
  std::optional<int64_t> shard_bytes;  // most of a file of weights; none: kShardBytes
  std::optional<DType> dtype;          // of weights; none: the precision of the run
  const DialectSet* dialects = &BuiltInDialects();
};

struct ExportedRun {
  std::string checkpoint;  // its folder
  int64_t step = 0;
  std::string model_type;
  DType dtype = DType::kBf16;
  // What no run has, and what was written in its place; what was copied, from SOURCE or the folder that weights are of.
  std::vector<std::string> made_up, copied;
  WrittenFolder written;
  Findings findings;  // with any problem, nothing is written
};

// Reads each byte that it writes against the checkpoint's digests, in pieces, and keeps little in memory.
// `progress(done, all)`: bytes. InvalidArgument, Unavailable or ResourceExhausted, with the path, if something cannot
// be read or written; DataLoss if the checkpoint is damaged.
absl::StatusOr<ExportedRun> ExportRun(const ExportRequest& request,
                                      const std::function<void(int64_t, int64_t)>& progress);

}  // namespace planwright
