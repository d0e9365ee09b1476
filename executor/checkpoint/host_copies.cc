#include "executor/checkpoint/host_copies.h"

#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace planwright::executor {

at::Tensor FlatTensorOf(const ModuleState& module, int storage, const std::string& state) {
  const auto place = static_cast<size_t>(storage);
  if (state.empty()) return module.storages().at(place).parameter.view(-1);
  const BucketState& bucket = module.buckets().at(static_cast<size_t>(module.module().storages.at(place).bucket));
  if (state == "master") return bucket.master;
  const auto found = bucket.states.find(state);
  TORCH_CHECK(found != bucket.states.end(), "the optimizer keeps no ", state);
  return found->second;
}

HostCopies::ModuleCopy& HostCopies::CopyOf(ModuleState& state) {
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
      const at::Tensor device = FlatTensorOf(state, storage, piece.state);
      const at::Tensor host =
          at::empty(device.sizes(), device.options().device(at::kCPU).pinned_memory(device.is_cuda()));
      found = copy.tensors.insert(copy.tensors.end(), {host, storage, bucket, piece.state, {}});
    }
    found->pieces.push_back(std::move(piece));
  }
  return copy;
}

void HostCopies::Copy(ModuleState& module) {
  at::Device device(at::kCPU);
  for (Tensor& tensor : CopyOf(module).tensors) {
    const at::Tensor source = FlatTensorOf(module, tensor.storage, tensor.state);
    device = source.device();
    tensor.host.copy_(source, /*non_blocking=*/true);
  }
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl impl(device.type());
  impl.synchronizeStream(impl.getStream(device));
}

std::vector<ShardSource> HostCopies::Sources() const {
  std::vector<ShardSource> sources;
  for (const ModuleCopy& module : modules_) {
    for (const Tensor& tensor : module.tensors) {
      const auto* bytes = static_cast<const std::byte*>(tensor.host.const_data_ptr());
      const auto size = static_cast<size_t>(tensor.host.element_size());
      for (const CheckpointPiece& piece : tensor.pieces) {
        ShardSource& source =
            sources.emplace_back(ShardSource{piece.key, piece.dtype, piece.shape, StridesOf(piece.runs), {}});
        for (const ElementRun& run : piece.runs) {
          source.ranges.emplace_back(bytes + static_cast<size_t>(run.local) * size,
                                     static_cast<size_t>(run.count) * size);
        }
      }
    }
  }
  return sources;
}

int64_t HostCopies::bytes() const {
  int64_t bytes = 0;
  for (const ModuleCopy& module : modules_) {
    for (const Tensor& tensor : module.tensors) bytes += static_cast<int64_t>(tensor.host.nbytes());
  }
  return bytes;
}

}  // namespace planwright::executor
