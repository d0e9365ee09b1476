#include <algorithm>
#include <cstring>
#include <utility>

#include "planner/plan/shard_map.h"
#include "planner/run/outcome/assemble_probe.h"
#include "planner/run/outcome/tensor_file.h"
#include "planner/wire/records/probe_format.h"

namespace planwright {
namespace {

// A published tensor that ranks' parts fill piece by piece.
struct PartlyFilledTensor {
  RawTensor tensor;
  std::vector<bool> filled;  // by element
};

class WeightAssembly {
 public:
  WeightAssembly(const Plan& plan, bool with_buffers) : plan_(plan), with_buffers_(with_buffers) {}

  absl::Status AddRank(int rank, const TensorFile& part) {
    for (const Module& module : plan_.modules) {
      if (!module.grid.contains(rank)) continue;
      for (const Storage& storage : module.storages) {
        if (storage.stage != CoordinateOf(module.grid, rank, Axis::kPp)) continue;
        if (absl::Status status = AddStorage(module, storage, rank, part); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<TensorFile> Finish() {
    TensorFile file;
    for (auto& [name, whole] : tensors_) {
      const auto missing = std::find(whole.filled.begin(), whole.filled.end(), false);
      if (missing != whole.filled.end()) {
        return absl::DataLossError(name + ": element " + std::to_string(missing - whole.filled.begin()) +
                                   " is in no rank's part");
      }
      file.tensors[name] = std::move(whole.tensor);
    }
    return file;
  }

 private:
  absl::Status AddStorage(const Module& module, const Storage& storage, int rank, const TensorFile& part) {
    if (storage.bucket < 0 && !with_buffers_) return absl::OkStatus();
    const std::string key = storage.bucket < 0 ? ProbeBufferKey(module.name, storage.frame, storage.slot)
                                               : ProbeBucketKey(module.name, storage.bucket);
    const auto found = part.tensors.find(key);
    if (found == part.tensors.end()) return absl::DataLossError("rank " + std::to_string(rank) + " wrote no " + key);
    // The elements [first, end) of the storage are in this part. A bucket's part is the rank's shard, which may begin
    // before the storage and end behind it: ClipRuns below keeps what lies in both.
    int64_t first = 0, end = ElementsOf(storage.shape);
    if (storage.bucket >= 0) {
      const Bucket& bucket = module.buckets[storage.bucket];
      const int64_t shard = bucket.elements / bucket.shards;
      first = ShardIndexOf(plan_, module, bucket, rank) * shard - storage.offset;
      end = first + shard;
    }
    if (found->second.elements() != end - first) {
      return absl::DataLossError("rank " + std::to_string(rank) + ": " + key + " has " +
                                 std::to_string(found->second.elements()) + " elements; expected " +
                                 std::to_string(end - first));
    }
    for (const PublishedSlice& slice : SlicesOf(module, storage, CoordinatesOf(module.grid, rank))) {
      Copy(module.parameters[slice.parameter], slice, ClipRuns(slice.runs, first, end), found->second);
    }
    return absl::OkStatus();
  }

  void Copy(const Parameter& parameter, const PublishedSlice& slice, const std::vector<ElementRun>& runs,
            const RawTensor& part) {
    PartlyFilledTensor& whole = tensors_[slice.file_name];
    const int64_t item = DTypeBytes(part.dtype);
    if (whole.filled.empty()) {
      whole.tensor = {part.dtype, parameter.shape, std::string(ElementsOf(parameter.shape) * item, '\0')};
      whole.filled.resize(ElementsOf(parameter.shape));
    }
    for (const ElementRun& run : runs) {
      // Ranks arrive in ascending order and replicas hold the same runs: the lowest rank's elements stay.
      if (whole.filled[run.whole]) continue;
      std::memcpy(whole.tensor.bytes.data() + run.whole * item, part.bytes.data() + run.local * item, run.count * item);
      std::fill_n(whole.filled.begin() + run.whole, run.count, true);
    }
  }

  const Plan& plan_;
  const bool with_buffers_;
  std::map<std::string, PartlyFilledTensor> tensors_;  // by published name
};

}  // namespace

absl::Status AssembleWeights(const Plan& plan, const std::string& directory, const std::string& kind) {
  WeightAssembly assembly(plan, kind.starts_with("parameters"));
  for (int rank = 0; rank < plan.world_size; ++rank) {
    absl::StatusOr<TensorFile> part = ReadTensorFile(ProbePartPath(directory, kind, rank));
    if (!part.ok()) return part.status();
    if (absl::Status status = assembly.AddRank(rank, *part); !status.ok()) return status;
  }
  absl::StatusOr<TensorFile> whole = assembly.Finish();
  if (!whole.ok()) return absl::DataLossError(kind + ": " + std::string(whole.status().message()));
  return WriteTensorFile(directory + "/" + kind + ".safetensors", *std::move(whole));
}

absl::Status AssembleProbe(const Plan& plan, const std::string& directory) {
  for (const char* kind : {"parameters", "parameters_last", "gradients_first", "gradients_last"}) {
    if (absl::Status status = AssembleWeights(plan, directory, kind); !status.ok()) return status;
  }
  for (const char* kind : {"values_first", "values_last"}) {
    if (absl::Status status = AssembleValues(plan, directory, kind); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace planwright
