#include "executor/checkpoint/checkpoint_loader.h"

#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "executor/checkpoint/host_copies.h"
#include "executor/tensors.h"
#include "executor/threads/threads.h"
#include "planner/checkpoint/pieces.h"

namespace planwright::executor {
namespace {

std::string TypeText(DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(std::string(DTypeName(dtype)), "[", absl::StrJoin(shape, ","), "]");
}

// All differences between the tensors of the checkpoint and those of the plan; the first few are named.
absl::Status CheckTensors(const Plan& plan, const CheckpointReader& reader) {
  constexpr size_t kNamed = 10;
  std::vector<std::string> problems;
  const std::vector<CheckpointTensor> all = CheckpointTensors(plan);  // ascending by key
  for (const CheckpointTensor& wanted : all) {
    const auto found = reader.tensors().find(wanted.key);
    if (found == reader.tensors().end()) {
      problems.push_back(absl::StrCat("the checkpoint has no ", wanted.key));
      continue;
    }
    if (found->second.dtype == wanted.dtype && found->second.shape == wanted.shape) continue;
    problems.push_back(absl::StrCat(wanted.key, " is ", TypeText(found->second.dtype, found->second.shape),
                                    " in the checkpoint, and ", TypeText(wanted.dtype, wanted.shape), " in the plan"));
  }
  for (const auto& [key, tensor] : reader.tensors()) {
    const auto at =
        std::lower_bound(all.begin(), all.end(), key,
                         [](const CheckpointTensor& one, const std::string& name) { return one.key < name; });
    if (at == all.end() || at->key != key) problems.push_back(absl::StrCat("the plan has no ", key));
  }
  if (problems.empty()) return absl::OkStatus();
  const size_t more = problems.size() > kNamed ? problems.size() - kNamed : 0;
  problems.resize(problems.size() - more);
  return absl::InvalidArgumentError(absl::StrCat(reader.folder(), " does not fit the plan:\n  ",
                                                 absl::StrJoin(problems, "\n  "),
                                                 more > 0 ? absl::StrCat("\n  and ", more, " more") : ""));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CheckpointLoader>> CheckpointLoader::Open(const Plan& plan, int rank,
                                                                         const std::string& folder) {
  absl::StatusOr<std::unique_ptr<CheckpointReader>> reader = CheckpointReader::Open(folder);
  if (!reader.ok()) return reader.status();
  if ((*reader)->manifest().precision != plan.precision) {
    return absl::InvalidArgumentError(absl::StrCat(folder, " is of a run in ", (*reader)->manifest().precision,
                                                   ", and the plan is in ", plan.precision));
  }
  if (absl::Status status = CheckTensors(plan, **reader); !status.ok()) return status;
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
