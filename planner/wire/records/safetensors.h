// Reading and writing safetensors files without torch. A file is: the length of the header as a little-endian u64, a
// JSON header (safetensors_header.h), the bytes of the tensors.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/plan/instruction.h"
#include "planner/wire/records/safetensors_header.h"

namespace planwright {

// A tensor in a file: where its bytes are, little-endian and row-major.
struct StoredTensor {
  DType dtype = DType::kFp32;
  std::vector<int64_t> shape;
  int64_t offset = 0, bytes = 0;  // in the file
};

// A file of F64, F32, BF16 and I64 tensors, open for reading.
class SafetensorsFile {
 public:
  // Errors of PlainFile::Open; InvalidArgument, with the path and the reason, if it is no valid safetensors file.
  static absl::StatusOr<SafetensorsFile> Open(const std::string& path);

  const std::map<std::string, StoredTensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  const std::string& path() const { return file_.path(); }
  std::string_view header() const { return header_; }  // the first bytes of the file, up to where tensors begin
  int64_t bytes() const { return file_.bytes(); }      // of the file

  // One tensor by name; NotFound names the tensor and the file.
  absl::StatusOr<StoredTensor> Find(const std::string& name) const;

  const PlainFile& file() const { return file_; }
  absl::StatusOr<std::string> Read(const StoredTensor& tensor) const;  // all bytes of it; errors of PlainFile::Read

 private:
  PlainFile file_;
  std::string header_;
  std::map<std::string, StoredTensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

// The first element that is not a finite number: infinity or NaN. None: all are. Integers are finite. The bytes may lie
// at any address.
std::optional<int64_t> FirstNotFinite(DType dtype, std::span<const std::byte> bytes);
// What a message says of it, after the name of the tensor.
std::string NotFinite(int64_t element);

// The name that headers have for a type: "BF16".
std::string SafetensorsTypeName(DType dtype);

// What the header says of a tensor. `type`: of any kind that the format has.
struct TensorEntry {
  TensorEntry(std::string its_name, std::string its_type, std::vector<int64_t> its_shape)
      : name(std::move(its_name)), type(std::move(its_type)), shape(std::move(its_shape)) {}
  TensorEntry(std::string its_name, DType dtype, std::vector<int64_t> its_shape)
      : TensorEntry(std::move(its_name), SafetensorsTypeName(dtype), std::move(its_shape)) {}

  std::string name, type;
  std::vector<int64_t> shape;
};

// How a file of tensors begins, and in which order their bytes follow.
struct SafetensorsLayout {
  std::string header;         // with its length, up to where tensors begin: a multiple of 8 bytes
  std::vector<size_t> order;  // indices of `tensors`: those of wide elements first, and then by name
};
// The same tensors in any order give the same header. InvalidArgument if two tensors have one name, if the format
// has no such type, or if readers would refuse the header.
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
