// Reading and writing safetensors files without torch. A file is: the length of the header as a little-endian u64, a
// JSON header, the bytes of the tensors. Files come from elsewhere, so nothing in them is trusted: sizes are limited
// and checked for overflow, and the tensors must cover the bytes exactly, without gap or overlap.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // bytes
inline constexpr size_t kMaxSafetensorsTensors = 1'000'000;
inline constexpr size_t kMaxSafetensorsRank = 8;  // dims of a tensor

// A tensor in a mapped file: little-endian, row-major bytes. They may not be aligned, so copy them before reading
// numbers.
struct TensorView {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  const std::byte* data = nullptr;
  size_t bytes = 0;
};

// A file of F64, F32, BF16 and I64 tensors, mapped read-only. Views are valid as long as the object, also after it
// moved.
class SafetensorsFile {
 public:
  // NotFound if there is no such file; InvalidArgument, with the path and the reason, if it is not a valid one.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::map<std::string, TensorView>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }
  // The first bytes of the file, up to where tensors begin.
  std::string_view header() const { return {reinterpret_cast<const char*>(mapping_.get()), header_bytes_}; }
  size_t bytes() const { return mapping_.get_deleter().bytes; }  // of the file

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
  size_t header_bytes_ = 0;
  std::map<std::string, TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
};

// What the header says of a tensor.
struct TensorEntry {
  std::string name;
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
};

// How a file of tensors begins, and in which order their bytes follow.
struct SafetensorsLayout {
  std::string header;         // with its length, up to where tensors begin: a multiple of 8 bytes
  std::vector<size_t> order;  // indices of `tensors`: those of wide elements first, and then by name
};
// The same tensors in any order give the same header. InvalidArgument if two tensors have one name, or if readers would
// refuse the header.
absl::StatusOr<SafetensorsLayout> LayOutSafetensors(const std::vector<TensorEntry>& tensors,
                                                    const std::map<std::string, std::string>& metadata = {});

// A tensor to be written.
struct TensorBytes {
  std::string name;
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  std::string bytes;  // little-endian, row-major
};

// Writes a temporary file beside `path` and renames it, so that readers see the whole file or none. The same tensors in
// any order give the same bytes. InvalidArgument if two tensors have one name, or if bytes do not fit a shape.
absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorBytes>& tensors,
                              const std::map<std::string, std::string>& metadata = {});

}  // namespace planwright
