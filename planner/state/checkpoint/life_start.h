// The folders of lives, and how each life began (docs/checkpoints.md#lives).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// How a life began: RUN/lives/N/start.json.
struct LifeStart {
  int from_life = 0;      // the life whose checkpoint it loaded; 0: it began fresh
  int64_t from_step = 0;  // the step of that checkpoint
  // What its checkpoints say, too. Both empty: it began before runs had an identity.
  std::string run_id, plan_digest;
};

// RUN/lives/N. Beside start.json, it keeps what `plan report` tells of the life: the checkpoints that it wrote
// (checkpoint_log.h), and the records of steps that were dropped from metrics.jsonl when it began, as it did them
// again.
std::string LifeFolder(const std::string& run_dir, int life);
inline constexpr int kMostLives = 999'999'999;
inline constexpr char kDroppedStepsFile[] = "dropped.jsonl";

// The numbers of all lives, ascending. None if there is no folder of lives; Unavailable if it cannot be read.
absl::StatusOr<std::vector<int>> LivesOf(const std::string& run_dir);

// Written before the life's first step. ResourceExhausted if that fails.
absl::Status WriteLifeStart(const std::string& run_dir, int life, const LifeStart& start);
// None: the life has written no start, so it has done no step. DataLoss if the file is damaged, or is that of another
// life; Unavailable if it cannot be read.
absl::StatusOr<std::optional<LifeStart>> ReadLifeStart(const std::string& run_dir, int life);

}  // namespace planwright
