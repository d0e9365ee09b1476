// The checkpoints of a run, as its storage instructions need them: which one to go on from, loading it, writing new
// ones (docs/checkpoints.md).
#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "executor/checkpoint/checkpoint_loader.h"
#include "executor/checkpoint/checkpoint_writer.h"
#include "executor/checkpoint/resume_point.h"
#include "executor/program/rank.h"
#include "planner/state/checkpoint/trained_files.h"

namespace planwright::executor {

class RunCheckpoints {
 public:
  // Keeps references.
  RunCheckpoints(const Plan& plan, const Environment& environment, const std::string& run_dir, int life,
                 c10d::Store& store, CheckpointWriter::Hooks hooks);

  // Whether the run goes on from a checkpoint. All ranks get the same answer. Errors: those of ResumePoint::Next.
  absl::StatusOr<bool> Choose();
  // Before Prepare: the digests of the data, which manifests get (Manifest::data). InvalidArgument if the run goes on
  // from a checkpoint that was trained on other documents, unless these are `accepted` (DigestOfAll; empty: none are).
  absl::Status SetSources(SourceDigests digests, std::string accepted);
  // Before the first instruction: the digests of what adapters stand on (Manifest::base). InvalidArgument if the run
  // goes on from a checkpoint whose adapters stand on something else.
  absl::Status SetBase(std::map<std::string, std::string> digests);
  // Allocates the memory of the copies, after setup. On a GPU it is pinned, which takes seconds.
  void Prepare(at::Device device);
  // Carries out a storage instruction. ExitError if the checkpoint does not fit the plan (kExitUsage).
  void Run(OpKind kind, ModuleState* module, StepState& step, ManifestNotes& notes);
  // After the list `resume`: all ranks agree whether the checkpoint was whole. True: it was not, and an older one is
  // chosen. Errors: those of ResumePoint::Agree and Next, and of SetSources.
  absl::StatusOr<bool> TryAgain();
  // Before files of the run are changed that a newer life may use by now: Aborted if there is one; ResourceExhausted if
  // the run directory cannot be read.
  absl::Status CheckNotReplaced() const;
  int64_t first_step() const { return point_.first_step(); }
  const std::string& run_id() const { return point_.run_id(); }  // after Choose
  void Finish();                                                 // waits until the last checkpoint is published

 private:
  void Load(ModuleState& module);
  // Of the chosen one. An error where it cannot be read, which is told where the checkpoint is loaded.
  absl::StatusOr<Manifest> ReadChosenManifest() const;
  absl::Status CheckSources() const;
  CheckpointWriter& writer();

  const Plan& plan_;
  const Environment& environment_;
  const std::string run_dir_;
  const int life_;
  const CheckpointWriter::Hooks hooks_;
  ResumePoint point_;
  std::string folder_;   // of the chosen checkpoint
  std::string problem_;  // what is damaged in it
  std::unique_ptr<CheckpointLoader> loader_;
  double load_seconds_ = 0;
  SourceDigests sources_;
  std::string accepted_sources_;
  std::map<std::string, std::string> base_;
  std::unique_ptr<CheckpointWriter> writer_;
};

}  // namespace planwright::executor
