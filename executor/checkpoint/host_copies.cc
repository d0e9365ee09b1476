#include "executor/checkpoint/host_copies.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "executor/base/tensors.h"
#include "planner/base/threads/threads.h"

namespace planwright::executor {
namespace {

// Pieces are powers of two: LibTorch rounds pinned memory up to one. Large ones, as a copy of few bytes costs as much
// to begin as one of many. Where memory is short there are a few pieces all the same, so that the memory of one is free
// before all the others are written.
constexpr int64_t kPieceBytes = int64_t{64} << 20, kLeastPieceBytes = int64_t{64} << 10, kPiecesAtLeast = 4;
constexpr size_t kPiecesAtOnce = 4;

// `total`: bytes of all pieces. `limit`: of the memory for them; 0: none.
int64_t PieceBytes(int64_t total, int64_t limit) {
  int64_t bytes = kPieceBytes;
  while (bytes > kLeastPieceBytes && (bytes / 2 >= total || (limit > 0 && bytes * kPiecesAtLeast > limit))) bytes /= 2;
  return bytes;
}

// Runs of elements that lie side by side, though not in the whole tensor, are one.
std::vector<std::pair<int64_t, int64_t>> LocalRanges(const std::vector<ElementRun>& runs) {
  std::vector<std::pair<int64_t, int64_t>> ranges;  // first, count
  for (const ElementRun& run : runs) {
    if (!ranges.empty() && ranges.back().first + ranges.back().second == run.local) {
      ranges.back().second += run.count;
    } else {
      ranges.emplace_back(run.local, run.count);
    }
  }
  return ranges;
}

at::Tensor HostMemory(int64_t bytes, at::Device device) {
  const c10::DeviceGuard guard(device);
  return at::empty({bytes}, at::TensorOptions(at::kCPU).dtype(at::kByte).pinned_memory(device.is_cuda()));
}

// Frozen weights do not change, and weights in a bucket change when the optimizer does. What is left is the expert
// bias, which changes by itself at the end of each step.
bool ChangesByItself(const Module& module, const Storage& storage) {
  return module.parameters[static_cast<size_t>(storage.parameters.front())].buffer;
}

}  // namespace

at::Tensor FlatTensorOf(const ModuleState& module, int storage, const std::string& state) {
  const auto index = static_cast<size_t>(storage);
  if (state.empty()) return module.storages().at(index).parameter.view(-1);
  const BucketState& bucket = module.buckets().at(static_cast<size_t>(module.module().storages.at(index).bucket));
  if (state == "master") return bucket.master;
  const auto found = bucket.states.find(state);
  TORCH_CHECK(found != bucket.states.end(), "the optimizer keeps no ", state);
  return found->second;
}

size_t HostCopies::OriginOf(const Module& module, const CheckpointPiece& piece) {
  const Storage& storage = module.storages[static_cast<size_t>(piece.storage)];
  const auto same = [&](const Origin& one) {
    if (one.module != &module || one.state != piece.state) return false;
    return one.storage == piece.storage ||
           (!piece.state.empty() && module.storages[static_cast<size_t>(one.storage)].bucket == storage.bucket);
  };
  if (const auto found = std::find_if(origins_.begin(), origins_.end(), same); found != origins_.end())
    return static_cast<size_t>(found - origins_.begin());
  Origin& origin = origins_.emplace_back();
  origin.module = &module, origin.storage = piece.storage, origin.state = piece.state;
  if (storage.bucket >= 0) {
    const auto marked = std::find_if(buckets_.begin(), buckets_.end(), [&](const Marked& one) {
      return one.module == &module && one.bucket == storage.bucket;
    });
    origin.bucket = static_cast<int>(marked - buckets_.begin());
    if (marked == buckets_.end()) buckets_.push_back({&module, storage.bucket});
  } else if (ChangesByItself(module, storage)) {
    origin.whole = HostMemory(ElementsOf(storage.shape) * DTypeBytes(piece.dtype), *device_);
  }
  return origins_.size() - 1;
}

void HostCopies::Prepare(at::Device device) {
  if (device_) return;
  device_ = device;
  std::vector<std::pair<CheckpointPiece, size_t>> all;  // with their origins
  int64_t total = 0, limit = plan_.checkpoint.copy_bytes;
  for (const Module& module : plan_.modules) {
    for (CheckpointPiece& piece : PiecesToWrite(plan_, module, rank_)) {
      const size_t origin = OriginOf(module, piece);
      if (!origins_[origin].whole.defined()) {
        for (const ElementRun& run : piece.runs) total += run.count * DTypeBytes(piece.dtype);
      }
      all.emplace_back(std::move(piece), origin);
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {  // as LayOutSafetensors
    const int64_t width = DTypeBytes(a.first.dtype), other = DTypeBytes(b.first.dtype);
    return width == other ? a.first.key < b.first.key : width > other;
  });
  if (limit > 0) {
    for (const Origin& origin : origins_) limit -= origin.whole.defined() ? origin.whole.numel() : 0;
    TORCH_CHECK(limit >= kLeastPieceBytes, "the plan's copy_bytes, ", plan_.checkpoint.copy_bytes,
                ", have no room for a piece of ", kLeastPieceBytes, " bytes");
  }
  piece_bytes_ = PieceBytes(total, limit);
  pieces_.resize(static_cast<size_t>((total + piece_bytes_ - 1) / piece_bytes_));
  slots_.resize(limit == 0 ? pieces_.size() : std::min(pieces_.size(), static_cast<size_t>(limit / piece_bytes_)));
  // Most of pinning is the kernel's work for each page, and several threads share it.
  ForEachItem(ThreadsOfRank(), static_cast<int64_t>(slots_.size()),
              [&](int64_t item) { slots_[static_cast<size_t>(item)] = HostMemory(piece_bytes_, device); });
  int64_t reached = 0;
  for (auto& [piece, origin] : all) {
    ShardSource& source =
        sources_.emplace_back(ShardSource{piece.key, piece.dtype, piece.shape, StridesOf(piece.runs), {}});
    AddRanges(piece, origin, reached, source);
  }
}

// `reached`: bytes of all pieces so far.
void HostCopies::AddRanges(const CheckpointPiece& piece, size_t origin, int64_t& reached, ShardSource& source) {
  const int64_t width = DTypeBytes(piece.dtype);
  const auto add = [&](const at::Tensor& memory, int64_t offset, int64_t bytes, int64_t at) {
    const auto* data = static_cast<const std::byte*>(memory.const_data_ptr()) + offset;
    source.ranges.emplace_back(data, static_cast<size_t>(bytes));
    ranges_.emplace_back(data, at);
  };
  for (auto [first, count] : LocalRanges(piece.runs)) {
    if (const at::Tensor& whole = origins_[origin].whole; whole.defined()) {
      add(whole, first * width, count * width, -1);
      continue;
    }
    while (count > 0) {
      // Wide elements come first, so each begins at a multiple of its width, and none lies in two pieces.
      const int64_t at = reached / piece_bytes_, offset = reached % piece_bytes_;
      const int64_t here = std::min(count, (piece_bytes_ - offset) / width);
      pieces_[static_cast<size_t>(at)].push_back({origin, first, here, offset});
      if (const int bucket = origins_[origin].bucket; bucket >= 0) ++buckets_[static_cast<size_t>(bucket)].parts;
      add(slots_[static_cast<size_t>(at) % slots_.size()], offset, here * width, at);
      first += here, count -= here, reached += here * width;
    }
  }
}

void HostCopies::Begin(ModuleState& module) {
  const Module* made = &module.module();
  for (Origin& origin : origins_) {
    if (origin.module != made) continue;
    origin.from = FlatTensorOf(module, origin.storage, origin.state);
    if (!origin.whole.defined()) continue;
    origin.whole.view(origin.from.scalar_type()).copy_(origin.from, /*non_blocking=*/true);
    origin.from.reset();
  }
  for (Marked& marked : buckets_) {
    if (marked.module != made) continue;
    marked.open = marked.parts;
    marked.mark = module.buckets()[static_cast<size_t>(marked.bucket)].copied = std::make_shared<CopyMark>();
  }
  if (!device_->is_cuda()) return;
  begun_.emplace(device_->type());
  begun_->record(c10::impl::VirtualGuardImpl(device_->type()).getStream(*device_));
}

void HostCopies::Copy() {
  copied_ = next_range_ = 0;
  const c10::DeviceGuard device(*device_);
  if (begun_) {
    const c10::impl::VirtualGuardImpl impl(device_->type());
    if (!stream_) stream_ = impl.getStreamFromGlobalPool(*device_);
    begun_->synchronize();
    begun_.reset();
  }
  CopyPieces(slots_.size());
}

void HostCopies::BeforeRange(const std::byte* range) {
  TORCH_CHECK(next_range_ < ranges_.size() && ranges_[next_range_].first == range,
              "the ranges of a shard are written in another order than they are copied in");
  const int64_t piece = ranges_[next_range_++].second;
  // The pieces before this one are written.
  if (piece >= 0) CopyPieces(std::min(pieces_.size(), static_cast<size_t>(piece) + slots_.size()));
}

// Copies the pieces up to `end`, a few at a time. On a GPU that is as fast as all at once, and the driver's queue,
// which holds about a thousand entries, does not fill up: if it did, every other thread would wait in the driver.
void HostCopies::CopyPieces(size_t end) {
  if (copied_ >= end) return;
  // A thread has a device of its own, 0 at first. A rank that used it by mistake would make a context on it, which
  // takes a second, and in which all launches of the rank wait.
  const c10::DeviceGuard device(*device_);
  std::deque<c10::Event> under_way;
  for (size_t queued = copied_; copied_ < end; PieceIsCopied(copied_++)) {
    for (; queued < std::min(end, copied_ + kPiecesAtOnce); ++queued) {
      std::optional<c10::StreamGuard> guard;
      if (stream_) guard.emplace(*stream_);
      QueuePiece(queued);
      if (stream_) under_way.emplace_back(stream_->device_type()).record(*stream_);
    }
    if (!stream_) continue;
    under_way.front().synchronize();
    under_way.pop_front();
  }
  if (!done()) return;
  for (Origin& origin : origins_) origin.from.reset();
}

void HostCopies::QueuePiece(size_t piece) {
  const at::Tensor& slot = slots_[piece % slots_.size()];
  for (const Part& part : pieces_[piece]) {
    const at::Tensor from = origins_[part.origin].from.narrow(0, part.first, part.count);
    const at::Tensor to = slot.narrow(0, part.offset, static_cast<int64_t>(from.nbytes())).view(from.scalar_type());
    to.copy_(from, /*non_blocking=*/true);
  }
}

void HostCopies::PieceIsCopied(size_t piece) {
  for (const Part& part : pieces_[piece]) {
    const int bucket = origins_[part.origin].bucket;
    if (bucket < 0) continue;
    Marked& marked = buckets_[static_cast<size_t>(bucket)];
    if (--marked.open == 0) marked.mark->Done();
  }
}

int64_t HostCopies::bytes() const {
  int64_t bytes = static_cast<int64_t>(slots_.size()) * piece_bytes_;
  for (const Origin& origin : origins_) bytes += origin.whole.defined() ? origin.whole.numel() : 0;
  return bytes;
}

}  // namespace planwright::executor
