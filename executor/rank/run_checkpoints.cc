#include "executor/rank/run_checkpoints.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <chrono>
#include <cstdio>
#include <vector>

#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "planner/base/files/exit_status.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/threads/threads.h"
#include "planner/state/checkpoint/format.h"
#include "planner/state/weights/base_digest.h"

namespace planwright::executor {
namespace {

// A damaged checkpoint is noted, so that all ranks can take an older one together; all else ends the run.
void NoteOrThrow(const absl::Status& status, std::string& problem) {
  if (status.ok()) return;
  if (!absl::IsDataLoss(status)) {
    const bool misfit = absl::IsInvalidArgument(status);
    throw ExitError(misfit ? kExitUsage : kExitStorage, std::string(status.message()));
  }
  problem = std::string(status.message());
}

}  // namespace

RunCheckpoints::RunCheckpoints(const Plan& plan, const Environment& environment, const std::string& run_dir, int life,
                               c10d::Store& store, CheckpointWriter::Hooks hooks)
    : plan_(plan), environment_(environment), run_dir_(run_dir), life_(life), hooks_(std::move(hooks)),
      point_(plan, environment, run_dir, life, store) {}

absl::StatusOr<bool> RunCheckpoints::Choose() {
  absl::StatusOr<std::string> folder = point_.Next();
  if (!folder.ok()) return folder.status();
  folder_ = *std::move(folder);
  return !folder_.empty();
}

absl::StatusOr<Manifest> RunCheckpoints::ReadChosenManifest() const {
  const absl::StatusOr<std::string> text = ReadWholeFile(folder_ + "/" + kManifestFile, kManifestJson.bytes);
  if (!text.ok()) return text.status();
  return ReadManifest(*text);
}

absl::Status RunCheckpoints::SetSources(SourceDigests digests, std::string accepted) {
  sources_ = std::move(digests);
  accepted_sources_ = std::move(accepted);
  return CheckSources();
}

// Who launches by hand is told before ranks start. But a run that is started again by itself may find other files.
absl::Status RunCheckpoints::CheckSources() const {
  if (folder_.empty() || sources_.empty() || DigestOfAll(sources_) == accepted_sources_) return absl::OkStatus();
  const absl::StatusOr<Manifest> manifest = ReadChosenManifest();
  if (!manifest.ok()) return absl::OkStatus();
  const std::vector<std::string> others = OtherFilesLines(*manifest, sources_);
  if (others.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StrJoin(others, "; "), "; going on with ", run_dir_,
                   " would change the loss curve: bring the files back and run `plan data index`, launch it with "
                   "--accept-changes if that is meant, or choose another --run-dir"));
}

absl::Status RunCheckpoints::SetBase(std::map<std::string, std::string> digests) {
  base_ = std::move(digests);
  if (folder_.empty() || base_.empty()) return absl::OkStatus();
  const absl::StatusOr<Manifest> manifest = ReadChosenManifest();
  const std::string other = manifest.ok() ? OtherBase(plan_, manifest->base, base_, folder_) : "";
  return other.empty() ? absl::OkStatus() : absl::InvalidArgumentError(other);
}

void RunCheckpoints::Prepare(at::Device device) { writer().Prepare(device); }

void RunCheckpoints::Run(OpKind kind, ModuleState* module, StepState& step, ManifestNotes& notes) {
  switch (kind) {
    case OpKind::kLoadState: return Load(*module);
    case OpKind::kLoadCounters:
      if (problem_.empty() && loader_ != nullptr) loader_->LoadCounters(step, notes);
      return;
    case OpKind::kSaveState: return writer().Save(*module);
    case OpKind::kSaveCounters: return writer().SaveCounters(step, notes);
    case OpKind::kPublishCheckpoint: return writer().Publish();
    default: TORCH_CHECK(false, OpName(kind), " is not a storage instruction");
  }
}

void RunCheckpoints::Load(ModuleState& module) {
  const auto begin = std::chrono::steady_clock::now();
  if (loader_ == nullptr && problem_.empty()) {
    absl::StatusOr<std::unique_ptr<CheckpointLoader>> opened =
        CheckpointLoader::Open(plan_, environment_.rank, folder_);
    NoteOrThrow(opened.status(), problem_);
    if (opened.ok()) loader_ = *std::move(opened);
  }
  if (problem_.empty()) NoteOrThrow(loader_->Load(module, ThreadsOfRank()), problem_);
  load_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

absl::StatusOr<bool> RunCheckpoints::TryAgain() {
  const absl::StatusOr<std::string> found = point_.Agree(problem_);
  if (!found.ok()) return found.status();
  if (found->empty()) {
    const std::string loaded =
        absl::StrFormat("loaded and verified %.3f GB in %.3f s on rank %d",
                        static_cast<double>(loader_->bytes_read()) / 1e9, load_seconds_, environment_.rank);
    LogInfo(loaded);
    if (environment_.rank == 0) {
      std::printf("%s\n", loaded.c_str());
      std::fflush(stdout);
    }
    loader_.reset();
    return false;
  }
  problem_.clear();
  loader_.reset();
  const absl::StatusOr<bool> chosen = Choose();
  if (!chosen.ok()) return chosen.status();
  if (absl::Status same = CheckSources(); !same.ok()) return same;  // an older one may be of other files
  return true;
}

absl::Status RunCheckpoints::CheckNotReplaced() const { return CheckNoNewerLife(run_dir_, life_); }

CheckpointWriter& RunCheckpoints::writer() {
  if (writer_ == nullptr) {
    writer_ = std::make_unique<CheckpointWriter>(plan_, environment_, run_dir_, point_.run_id(), life_,
                                                 point_.checkpoint_step(), hooks_);
    writer_->SetSources(sources_);
    writer_->SetBase(base_);
  }
  return *writer_;
}

void RunCheckpoints::Finish() {
  if (writer_ != nullptr) writer_->Finish();
}

}  // namespace planwright::executor
