// A safetensors file copied into memory, so that its tensors can be changed. Used to join the ranks' probe parts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/shard_map.h"
#include "planner/run_files/safetensors.h"

namespace planwright {

struct RawTensor {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  std::string bytes;  // row-major, little-endian

  int64_t elements() const { return ElementsOf(shape); }
};

struct TensorFile {
  std::map<std::string, RawTensor> tensors;
  std::map<std::string, std::string> metadata;
};

inline absl::StatusOr<TensorFile> ReadTensorFile(const std::string& path) {
  absl::StatusOr<SafetensorsFile> mapped = SafetensorsFile::Open(path);
  if (!mapped.ok()) return mapped.status();
  TensorFile file{{}, mapped->metadata()};
  for (const auto& [name, view] : mapped->tensors()) {
    file.tensors[name] = {view.dtype, view.shape, std::string(reinterpret_cast<const char*>(view.data), view.bytes)};
  }
  return file;
}

inline absl::Status WriteTensorFile(const std::string& path, TensorFile file) {
  std::vector<TensorBytes> tensors;
  for (auto& [name, tensor] : file.tensors)
    tensors.push_back({name, tensor.dtype, std::move(tensor.shape), std::move(tensor.bytes)});
  return WriteSafetensors(path, tensors, file.metadata);
}

}  // namespace planwright
