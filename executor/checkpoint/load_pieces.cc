#include "executor/checkpoint/load_pieces.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#include "executor/base/tensors.h"
#include "executor/checkpoint/host_copies.h"
#include "planner/base/threads/threads.h"
#include "planner/state/checkpoint/number_range.h"
#include "planner/state/weights/name_groups.h"

namespace planwright::executor {
namespace {

// Elements that a thread takes at a time. Large enough for a disk, small enough that an embedding is shared by threads
// and that little is staged.
constexpr int64_t kPart = 1 << 22;

// Elements [first, end) of a piece, counted in the storage or shard.
struct Part {
  size_t piece = 0;
  int64_t first = 0, end = 0;
};

std::span<std::byte> BytesOf(const at::Tensor& tensor) {
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

// Of weights, masters, buffers and moments: what the rank keeps, which may be narrower than what a file has.
DType TypeOf(const at::Tensor& tensor) {
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    if (tensor.scalar_type() == ScalarTypeOf(dtype)) return dtype;
  }
  return DType::kFp64;
}

absl::Status LoadPart(const PieceToLoad& from, const Part& part, const DrawPiece& draw, const ModuleState& module) {
  const CheckpointPiece& piece = *from.piece;
  const at::Tensor target =
      FlatTensorOf(module, piece.storage, piece.state).narrow(0, part.first, part.end - part.first);
  const std::vector<ElementRun> runs = ClipRuns(piece.runs, part.first, part.end);
  const at::ScalarType type =
      from.reader == nullptr ? target.scalar_type() : ScalarTypeOf(from.reader->TypeOf(piece.key).value().dtype);
  // Memory of the host that has the type already needs no copy.
  const bool in_place = target.is_cpu() && target.scalar_type() == type;
  std::optional<c10::DeviceGuard> guard;  // pinned memory belongs to a device, and on this thread none has been chosen
  if (target.is_cuda()) guard.emplace(target.device());
  const at::Tensor host = in_place ? target
                                   : at::empty({part.end - part.first},
                                               at::TensorOptions(at::kCPU).dtype(type).pinned_memory(target.is_cuda()));
  if (from.reader == nullptr) {
    for (const ElementRun& run : runs) draw(piece, run, host.narrow(0, run.local, run.count));
  } else {
    // A moment that has overflowed belongs to the run as it is; a weight that is no number ends it anyway, steps later.
    const bool weight = piece.state.empty() || piece.state == "master";
    absl::Status read = from.reader->Read(piece.key, runs, BytesOf(host),
                                          weight ? ElementReader::Numbers::kFinite : ElementReader::Numbers::kAny);
    if (read.ok()) read = CheckRange(*from.reader, piece.key, runs, BytesOf(host), TypeOf(target));
    if (!read.ok()) return read;
  }
  // Rounds where the storage is narrower than what was read.
  if (!in_place) at::Tensor(target).copy_(host);
  return absl::OkStatus();
}

}  // namespace

std::vector<absl::Status> LoadPieces(const std::vector<PieceToLoad>& pieces, const DrawPiece& draw, int threads,
                                     ModuleState& module) {
  std::vector<Part> parts;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const std::vector<ElementRun>& runs = pieces[i].piece->runs;
    // The elements of a piece lie side by side on the rank: a storage is its parameters one after the other.
    const int64_t begin = runs.front().local, end = runs.back().local + runs.back().count;
    int64_t elements = 0;
    for (const ElementRun& run : runs) elements += run.count;
    TORCH_CHECK(elements == end - begin, pieces[i].piece->key, " lies in the storage with gaps");
    for (int64_t first = begin; first < end; first += kPart) parts.push_back({i, first, std::min(first + kPart, end)});
  }
  std::vector<absl::Status> statuses(pieces.size());
  std::vector<size_t> failed_parts(pieces.size(), parts.size());
  std::mutex mutex;
  ForEachItem(threads, static_cast<int64_t>(parts.size()), [&](int64_t item) {
    const auto at = static_cast<size_t>(item);
    absl::Status status = LoadPart(pieces[parts[at].piece], parts[at], draw, module);
    if (status.ok()) return;
    // The first part of a piece that fails speaks for it, whichever thread is faster.
    const std::lock_guard lock(mutex);
    if (at > failed_parts[parts[at].piece]) return;
    failed_parts[parts[at].piece] = at;
    statuses[parts[at].piece] = std::move(status);
  });
  return statuses;
}

absl::Status MisfitOf(const std::string& folder, std::vector<std::string> problems) {
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(ListOf(folder + " does not fit the plan:", std::move(problems)));
}

}  // namespace planwright::executor
