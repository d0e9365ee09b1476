// A safetensors file copied into memory, so that its tensors can be changed. Used to join the ranks' probe parts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/shard_map.h"
#include "planner/wire/records/safetensors.h"

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
  absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::Open(path);
  if (!opened.ok()) return opened.status();
  TensorFile file{{}, opened->metadata()};
  for (const auto& [name, stored] : opened->tensors()) {
    absl::StatusOr<std::string> bytes = opened->Read(stored);
    if (!bytes.ok()) return bytes.status();
    file.tensors[name] = {stored.dtype, stored.shape, *std::move(bytes)};
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
