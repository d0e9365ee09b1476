#include "executor/checkpoint/host_copies.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <deque>
#include <memory>

#include "executor/threads/threads.h"

namespace planwright::executor {
namespace {

// LibTorch rounds pinned memory up to a power of two, so large tensors are copied in pieces of one.
constexpr int64_t kChunkBytes = int64_t{1} << 28;
// A GPU serves copies to the host one after the other. Small copies of the step (counts of rows, which the host waits
// for) must not wait behind gigabytes, so only a few pieces are under way at a time: 32 MiB, less than a millisecond.
constexpr int64_t kPieceBytes = int64_t{1} << 23;
constexpr size_t kPiecesAtOnce = 4;

// Pinning is slow, most of it is the work of the kernel for each page, and several threads share it.
std::vector<at::Tensor> Chunks(const at::Tensor& like, int threads) {
  const int64_t most = kChunkBytes / static_cast<int64_t>(like.element_size());
  std::vector<at::Tensor> chunks(static_cast<size_t>((like.numel() + most - 1) / most));
  ForEachItem(threads, static_cast<int64_t>(chunks.size()), [&](int64_t item) {
    const c10::DeviceGuard guard(like.device());
    chunks[static_cast<size_t>(item)] = at::empty({std::min(most, like.numel() - item * most)},
                                                  like.options().device(at::kCPU).pinned_memory(like.is_cuda()));
  });
  return chunks;
}

// Calls copy(chunk's part, part of `from`) for pieces of kPieceBytes.
template <typename Copy>
void ForPieces(const at::Tensor& from, const std::vector<at::Tensor>& chunks, Copy copy) {
  int64_t first = 0;
  for (const at::Tensor& chunk : chunks) {
    const int64_t most = kPieceBytes / static_cast<int64_t>(chunk.element_size());
    for (int64_t at = 0; at < chunk.numel(); at += most) {
      const int64_t count = std::min(most, chunk.numel() - at);
      copy(chunk.narrow(0, at, count), from.narrow(0, first + at, count));
    }
    first += chunk.numel();
  }
}

// Copies from a GPU on a stream of its own, a few pieces at a time.
class PacedCopies {
 public:
  PacedCopies(at::Device device, c10::Event& after)
      : device_(device), impl_(device.type()), stream_(impl_.getStreamFromGlobalPool(device)) {
    after.block(stream_);
  }
  void Add(const at::Tensor& to, const at::Tensor& from) {
    if (under_way_.size() == kPiecesAtOnce) {
      under_way_.front().synchronize();
      under_way_.pop_front();
    }
    const c10::StreamGuard guard(stream_);
    to.copy_(from, /*non_blocking=*/true);
    under_way_.emplace_back(device_.type()).record(stream_);
  }
  void Wait() {
    if (!under_way_.empty()) under_way_.back().synchronize();
    under_way_.clear();
  }

 private:
  const at::Device device_;
  const c10::impl::VirtualGuardImpl impl_;
  const c10::Stream stream_;
  std::deque<c10::Event> under_way_;
};

// Appends the bytes of elements [first, first + count), which may lie in several chunks.
void AppendRanges(const std::vector<at::Tensor>& chunks, int64_t first, int64_t count,
                  std::vector<std::span<const std::byte>>& ranges) {
  const int64_t size = chunks[0].numel(), bytes = static_cast<int64_t>(chunks[0].element_size());
  while (count > 0) {
    const int64_t within = first % size, here = std::min(count, size - within);
    const auto* data = static_cast<const std::byte*>(chunks[static_cast<size_t>(first / size)].const_data_ptr());
    ranges.emplace_back(data + within * bytes, static_cast<size_t>(here * bytes));
    first += here, count -= here;
  }
}

}  // namespace

at::Tensor FlatTensorOf(const ModuleState& module, int storage, const std::string& state) {
  const auto place = static_cast<size_t>(storage);
  if (state.empty()) return module.storages().at(place).parameter.view(-1);
  const BucketState& bucket = module.buckets().at(static_cast<size_t>(module.module().storages.at(place).bucket));
  if (state == "master") return bucket.master;
  const auto found = bucket.states.find(state);
  TORCH_CHECK(found != bucket.states.end(), "the optimizer keeps no ", state);
  return found->second;
}

HostCopies::ModuleCopy& HostCopies::CopyOf(const ModuleState& state) {
  const Module& module = state.module();
  for (ModuleCopy& copy : modules_) {
    if (copy.module == &module) return copy;
  }
  ModuleCopy& copy = modules_.emplace_back();
  copy.module = &module;
  for (CheckpointPiece& piece : PiecesToWrite(plan_, module, rank_)) {
    const int storage = piece.storage,
              bucket = piece.state.empty() ? -1 : module.storages[static_cast<size_t>(storage)].bucket;
    const auto same = [&](const Tensor& tensor) {
      return bucket < 0 ? tensor.storage == storage && tensor.bucket < 0
                        : tensor.bucket == bucket && tensor.state == piece.state;
    };
    auto found = std::find_if(copy.tensors.begin(), copy.tensors.end(), same);
    if (found == copy.tensors.end()) {
      // Behind the others of its bucket.
      const auto behind = std::find_if(copy.tensors.rbegin(), copy.tensors.rend(),
                                       [&](const Tensor& tensor) { return tensor.bucket == bucket; });
      const auto place = behind == copy.tensors.rend() ? copy.tensors.end() : behind.base();
      found = copy.tensors.insert(place, {storage, bucket, piece.state, {}, {}});
      found->chunks = Chunks(FlatTensorOf(state, storage, piece.state), ThreadsOfRank());
    }
    found->pieces.push_back(std::move(piece));
  }
  return copy;
}

void HostCopies::Begin(ModuleState& module) {
  ModuleCopy& copy = CopyOf(module);
  at::Device device(at::kCPU);
  for (size_t i = 0; i < copy.tensors.size(); ++i) {
    const Tensor& tensor = copy.tensors[i];
    const at::Tensor from = FlatTensorOf(module, tensor.storage, tensor.state);
    device = from.device();
    if (tensor.bucket < 0) {
      // Small, or frozen, or of a plan without masters: copied in the order of the program.
      ForPieces(from, tensor.chunks, [](const at::Tensor& to, const at::Tensor& part) { to.copy_(part, true); });
      continue;
    }
    std::shared_ptr<CopyMark>& mark = module.buckets()[static_cast<size_t>(tensor.bucket)].copied;
    if (mark == nullptr) mark = std::make_shared<CopyMark>();
    const bool last = i + 1 == copy.tensors.size() || copy.tensors[i + 1].bucket != tensor.bucket;
    tasks_.push_back({from, &tensor.chunks, last ? mark : nullptr});
  }
  if (!device.is_cuda()) return;
  begun_.emplace(device.type());
  begun_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

void HostCopies::CopyBuckets() {
  std::optional<PacedCopies> paced;
  if (begun_) paced.emplace(begun_->device(), *begun_);
  for (const Task& task : tasks_) {
    ForPieces(task.from, *task.to, [&](const at::Tensor& to, const at::Tensor& part) {
      paced ? paced->Add(to, part) : void(to.copy_(part));
    });
    if (task.last_of == nullptr) continue;
    if (paced) paced->Wait();
    task.last_of->Done();
  }
  // Tensors in no bucket were copied before the event.
  if (begun_) begun_->synchronize();
  tasks_.clear();
  begun_.reset();
}

std::vector<ShardSource> HostCopies::Sources() const {
  std::vector<ShardSource> sources;
  for (const ModuleCopy& module : modules_) {
    for (const Tensor& tensor : module.tensors) {
      for (const CheckpointPiece& piece : tensor.pieces) {
        ShardSource& source =
            sources.emplace_back(ShardSource{piece.key, piece.dtype, piece.shape, StridesOf(piece.runs), {}});
        for (const ElementRun& run : piece.runs) AppendRanges(tensor.chunks, run.local, run.count, source.ranges);
      }
    }
  }
  return sources;
}

}  // namespace planwright::executor
