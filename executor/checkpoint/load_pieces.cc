#include "executor/checkpoint/load_pieces.h"

#include <ATen/ops/empty.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <cstddef>
#include <mutex>
#include <utility>

#include "executor/checkpoint/host_copies.h"
#include "executor/tensors.h"
#include "executor/threads/threads.h"

namespace planwright::executor {

absl::Status LoadPieces(CheckpointReader& reader, const std::vector<CheckpointPiece>& pieces, int threads,
                        ModuleState& module) {
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
    const at::ScalarType stored = ScalarTypeOf(reader.tensors().at(piece.key).dtype);
    const at::Tensor host = at::empty({elements}, at::TensorOptions(at::kCPU).dtype(stored));
    // A moment that has overflowed belongs to the run as it is; a weight that is no number ends it anyway, steps later.
    const bool weight = piece.state.empty() || piece.state == "master";
    const absl::Status read =
        reader.Read(piece.key, runs, {static_cast<std::byte*>(host.mutable_data_ptr()), host.nbytes()},
                    weight ? CheckpointReader::Numbers::kFinite : CheckpointReader::Numbers::kAny);
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

std::string TypeText(DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(std::string(DTypeName(dtype)), "[", absl::StrJoin(shape, ","), "]");
}

absl::Status MisfitOf(const std::string& folder, std::vector<std::string> problems) {
  constexpr size_t kNamed = 100;
  if (problems.empty()) return absl::OkStatus();
  const size_t more = problems.size() > kNamed ? problems.size() - kNamed : 0;
  problems.resize(problems.size() - more);
  return absl::InvalidArgumentError(absl::StrCat(folder, " does not fit the plan:\n  ", absl::StrJoin(problems, "\n  "),
                                                 more > 0 ? absl::StrCat("\n  and ", more, " more") : ""));
}

}  // namespace planwright::executor
