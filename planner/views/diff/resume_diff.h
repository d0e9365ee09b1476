// What it would change to go on from a checkpoint with a plan: whether a launch would refuse it, at which step and
// sample it goes on, and what is another one from there on (docs/checkpoints.md#before-a-resume).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "planner/state/checkpoint/shard_reader.h"
#include "planner/views/diff/diff.h"

namespace planwright {

// The first step, from 1, at which a number that follows the schedule is another one.
struct RateChange {
  int64_t step = 0;
  double from = 0, to = 0;
};

// The same of the tensors of a part of rates: what changes of theirs.
struct PartRateChange {
  std::string from, to;  // the parts that they are in, by `match`; empty: in none
  std::string first;     // the first of them, by its published name
  int64_t tensors = 0;
  std::optional<RateChange> learning_rate, weight_decay;  // one of them at least
};

struct ResumeDiff {
  std::string folder;  // of the checkpoint
  Manifest manifest;
  std::string plan_digest;            // of the plan that goes on
  std::vector<std::string> refusals;  // why a launch would refuse it, and how to mend that; empty: it would not
  std::vector<std::string> misfits;   // tensors that do not fit the plan (TensorMisfits), which is one of the refusals
  size_t tensors = 0;                 // of the checkpoint
  int64_t checkpoint_bytes = 0;       // of its shards
  int64_t steps_done = 0, steps = 0;  // of the plan that goes on; steps_done is rounded down
  int world_size = 0;                 // of that plan
  int64_t most_bytes = 0, all_bytes = 0;  // that one rank loads at most, and all ranks together (BytesToLoad)

  // The plan that wrote the checkpoint, and the one that goes on. None: that plan is not known, and neither is what
  // follows.
  std::optional<PlanDiff> plan;
  bool other_layout = false, other_samples = false;
  int64_t first_other_sample = 0;  // with other_samples, of those that are left
  // All that is another one is documents that the run could not have read, which are padding now (`damaged: skip`).
  bool padded_samples = false;
  // The sources of data of kind `sources` whose files have other documents than those on which the run was trained.
  std::vector<std::string> other_files;
  std::string files_not_compared;  // why not; empty: they were, or the plan has no such sources
  std::string base_not_compared;   // the same of what its adapters stand on, which another machine may have
  // From the next step on; none: the same at all steps that are left.
  std::optional<RateChange> learning_rate, weight_decay;  // of the schedule
  std::vector<PartRateChange> parts;                      // of tensors that are in a part of one of the plans

  // The plan goes on as if the run had never ended.
  bool same() const;
  bool may_change_loss() const;  // with `plan`
};

// `wrote`: the plan that wrote the checkpoint; null: it cannot be read. Looks at the files of `plan` for
// the digests of its sources.
ResumeDiff DiffResume(const CheckpointReader& checkpoint, const Plan* wrote, const Plan& plan);

// {"resume": {...}} beside the fields of DiffJson. Without the plan that wrote the checkpoint, "may_change_loss" and
// "changes" are null.
nlohmann::ordered_json ResumeDiffJson(const ResumeDiff& diff);

// The same for people. `from`, `to`, `width`: as for DiffText.
std::string ResumeDiffText(const ResumeDiff& diff, const std::string& from, const std::string& to, size_t width = 0);

}  // namespace planwright
