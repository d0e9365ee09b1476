#include "executor/checkpoint/host_copies.h"

#include <ATen/ops/empty.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace planwright::executor {
namespace {

// LibTorch rounds pinned memory up to a power of two, so large tensors are copied in pieces of one.
constexpr int64_t kChunkBytes = int64_t{1} << 28;

std::vector<at::Tensor> Chunks(const at::Tensor& like) {
  const int64_t most = kChunkBytes / static_cast<int64_t>(like.element_size());
  std::vector<at::Tensor> chunks;
  for (int64_t first = 0; first < like.numel(); first += most) {
    chunks.push_back(at::empty({std::min(most, like.numel() - first)},
                               like.options().device(at::kCPU).pinned_memory(like.is_cuda())));
  }
  return chunks;
}

void CopyChunks(const at::Tensor& from, const std::vector<at::Tensor>& chunks) {
  int64_t first = 0;
  for (const at::Tensor& chunk : chunks) {
    at::Tensor(chunk).copy_(from.narrow(0, first, chunk.numel()), /*non_blocking=*/true);
    first += chunk.numel();
  }
}

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
      found = copy.tensors.insert(copy.tensors.end(), {storage, bucket, piece.state, {}, {}});
      found->chunks = Chunks(FlatTensorOf(state, storage, piece.state));
    }
    found->pieces.push_back(std::move(piece));
  }
  return copy;
}

void HostCopies::Copy(ModuleState& module) {
  ModuleCopy& copy = CopyOf(module);
  std::vector<const Tensor*> of_buckets;
  at::Device device(at::kCPU);
  for (const Tensor& tensor : copy.tensors) {
    const at::Tensor from = FlatTensorOf(module, tensor.storage, tensor.state);
    device = from.device();
    if (tensor.bucket >= 0 && device.is_cuda())
      of_buckets.push_back(&tensor);
    else
      CopyChunks(from, tensor.chunks);  // tensors in no bucket are small, or frozen: in the order of the program
  }
  if (!device.is_cuda()) return;
  const c10::impl::VirtualGuardImpl impl(device.type());
  const c10::Stream current = impl.getStream(device), beside = impl.getStreamFromGlobalPool(device);
  const auto mark = [&](const c10::Stream& stream) {
    auto event = std::make_shared<c10::Event>(device.type());
    event->record(stream);
    return event;
  };
  under_way_.push_back(mark(current));
  under_way_.back()->block(beside);
  const c10::StreamGuard guard(beside);
  for (const Tensor* tensor : of_buckets) {
    CopyChunks(FlatTensorOf(module, tensor->storage, tensor->state), tensor->chunks);
    // The last of a bucket's copies stands for all of them: they are on one stream.
    module.buckets()[static_cast<size_t>(tensor->bucket)].copied = mark(beside);
  }
  under_way_.push_back(mark(beside));
}

void HostCopies::Wait() {
  for (const std::shared_ptr<c10::Event>& event : under_way_) event->synchronize();
  under_way_.clear();
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
