// Reading and writing safetensors files without torch: u64 little-endian header length, a JSON header, the tensors'
// bytes. A file comes from elsewhere, so nothing in it is believed: sizes are limited and checked for overflow, and the
// tensors must cover the bytes exactly.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes
inline constexpr size_t kMaxSafetensorsTensors = 1'000'000;
inline constexpr size_t kMaxSafetensorsRank = 8;

// Little-endian, row-major bytes inside the mapped file; not necessarily aligned, so copy before use as numbers.
struct TensorView {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

// A read-only mapping of a file of F64, F32, BF16 and I64 tensors. Views live as long as the object (moving it keeps
// them).
class SafetensorsFile {
 public:
  // NotFound, or InvalidArgument naming the path and what is wrong with the file.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }

  // One tensor by name; NotFound names the tensor and the file.
  absl::StatusOr<TensorView> Find(const std::string& name) const;

 private:
  struct Unmap {
    Unmap() : bytes(0) {}
    explicit Unmap(size_t size) : bytes(size) {}
    void operator()(std::byte* address) const;
    size_t bytes;
  };

  absl::Status ReadHeader(size_t file_bytes);

  std::string path_;
  std::unique_ptr<std::byte, Unmap> mapping_;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

struct TensorBytes {
  std::string name;
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// Writes a temporary file beside `path` and renames it, so that readers see nothing or the whole file. The same tensors
// in any order give the same bytes. InvalidArgument if a name repeats or bytes do not fit the shape.
absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorBytes>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace planwright
