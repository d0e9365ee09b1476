#include "executor/checkpoint/checkpoint_loader.h"

#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <mutex>
#include <vector>

#include "executor/checkpoint/host_copies.h"
#include "executor/tensors.h"
#include "executor/threads/threads.h"
#include "planner/checkpoint/pieces.h"
#include "planner/checkpoint/plan_fit.h"

namespace planwright::executor {
namespace {

// The first few differences between the checkpoint and the plan are named.
absl::Status CheckFit(const Plan& plan, const CheckpointReader& reader) {
  constexpr size_t kNamed = 10;
  std::vector<std::string> misfits = TensorMisfits(plan, reader);
  if (misfits.empty()) return absl::OkStatus();
  const size_t more = misfits.size() > kNamed ? misfits.size() - kNamed : 0;
  misfits.resize(misfits.size() - more);
  return absl::InvalidArgumentError(absl::StrCat(reader.folder(), " does not fit the plan:\n  ",
                                                 absl::StrJoin(misfits, "\n  "),
                                                 more > 0 ? absl::StrCat("\n  and ", more, " more") : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointLoader>> CheckpointLoader::Open(const Plan& plan, int rank,
                                                                         const std::string& folder) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return reader.status();
  if (absl::Status status = CheckFit(plan, **reader); !status.ok()) return status;
  return std::unique_ptr<CheckpointLoader>(new CheckpointLoader(plan, rank, *std::move(reader)));
}

absl::Status CheckpointLoader::Load(ModuleState& module, int threads) {
  const std::vector<CheckpointPiece> pieces = PiecesToLoad(plan_, module.module(), rank_);
  std::mutex mutex;
  absl::Status first;
  ForEachItem(threads, static_cast<int64_t>(pieces.size()), [&](int64_t item) {
    const CheckpointPiece& piece = pieces[static_cast<size_t>(item)];
    // The elements of a piece lie side by side on the rank: a storage is its parameters one after the other.
    const int64_t begin = piece.runs.front().local, end = piece.runs.back().local + piece.runs.back().count;
    std::vector<ElementRun> runs = piece.runs;
    int64_t elements = 0;
    for (ElementRun& run : runs) run.local -= begin, elements += run.count;
    TORCH_CHECK(elements == end - begin, piece.key, " lies in the storage with gaps");
    const at::Tensor host = at::empty({elements}, at::TensorOptions(at::kCPU).dtype(ScalarTypeOf(piece.dtype)));
    const absl::Status read =
        reader_->Read(piece.key, runs, {static_cast<std::byte*>(host.mutable_data_ptr()), host.nbytes()});
    if (!read.ok()) {
      const std::lock_guard lock(mutex);
      first.Update(read);
      return;
    }
    // Rounds where the storage is narrower than the master in the file.
    FlatTensorOf(module, piece.storage, piece.state).narrow(0, begin, elements).copy_(host);
  });
  return first;
}

void CheckpointLoader::LoadCounters(StepState& step) const {
  const CheckpointCounters& counters = reader_->manifest().counters;
  step.applied_steps.fill_(counters.applied_steps);
  step.skipped_steps.fill_(counters.skipped_steps);
}

}  // namespace planwright::executor
