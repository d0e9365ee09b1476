#include "planner/wire/records/safetensors.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string_view>

#include "planner/base/json/json_text.h"
#include "planner/wire/records/safetensors_header.h"

namespace planwright {
namespace {

static_assert(std::endian::native == std::endian::little, "the bytes of tensors are used as they are in the file");

using Json = nlohmann::json;

std::optional<DType> DTypeOfSafetensors(const std::string& name) {
  if (name == "F64") return DType::kFp64;
  if (name == "F32") return DType::kFp32;
  if (name == "BF16") return DType::kBf16;
  if (name == "I64") return DType::kInt64;
  return std::nullopt;
}

// Bytes of a tensor; none if a size is negative, the product overflows, or they are no whole number of bytes.
std::optional<int64_t> BytesOf(const std::string& type, const std::vector<int64_t>& shape) {
  const int64_t bits = BitsOfSafetensorsType(type);
  const bool whole = bits % 8 == 0;  // elements of some types are a part of a byte
  int64_t amount = whole ? bits / 8 : bits;
  for (int64_t size : shape) {
    if (size < 0 || __builtin_mul_overflow(amount, size, &amount)) return std::nullopt;
  }
  if (whole) return amount;
  return amount % 8 == 0 ? std::optional<int64_t>(amount / 8) : std::nullopt;
}

absl::Status Errno(const std::string& what, const std::string& path) {
  const int code = errno;
  return absl::ErrnoToStatus(code, absl::StrCat(what, " ", path));
}

// Infinity and NaN are the numbers whose exponent bits are all set. The loop of a block has no branch, keeps masks as
// wide as the numbers, and runs a constant number of times: so compilers make vectors of it, also at -O2, and it takes
// little beside the reading.
template <typename Bits>
std::optional<int64_t> FirstNotFiniteOf(std::span<const std::byte> bytes, Bits exponent) {
  constexpr size_t kBlock = 4096;  // elements
  const size_t count = bytes.size() / sizeof(Bits);
  const auto bits_at = [&](size_t i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof bits);
    return bits;
  };
  size_t first = 0;
  for (; first + kBlock <= count; first += kBlock) {
    Bits found = 0;
    for (size_t i = 0; i < kBlock; ++i)
      found |= (bits_at(first + i) & exponent) == exponent ? static_cast<Bits>(~Bits{0}) : Bits{0};
    if (found != 0) break;
  }
  for (; first < count; ++first) {
    if ((bits_at(first) & exponent) == exponent) return static_cast<int64_t>(first);
  }
  return std::nullopt;
}

}  // namespace

std::string SafetensorsTypeName(DType dtype) {
  switch (dtype) {
    case DType::kFp64: return "F64";
    case DType::kFp32: return "F32";
    case DType::kBf16: return "BF16";
    case DType::kInt64: return "I64";
  }
  return "";
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path) {
  absl::StatusOr<PlainFile> file = PlainFile::Open(path);
  if (!file.ok()) return file.status();
  absl::StatusOr<SafetensorsHeader> header = ReadSafetensorsHeader(*file);
  const auto wrong = [&path](auto... what) { return absl::InvalidArgumentError(absl::StrCat(path, ": ", what...)); };
  if (absl::IsInvalidArgument(header.status())) return wrong(header.status().message());
  if (!header.ok()) return header.status();
  SafetensorsFile result;
  result.file_ = *std::move(file);
  result.header_ = std::move(header->text);
  result.metadata_ = std::move(header->metadata);
  for (auto& [name, tensor] : header->tensors) {
    const auto dtype = DTypeOfSafetensors(tensor.type);
    if (!dtype) return wrong("tensor ", name, ": dtype ", tensor.type, " is not one of F64, F32, BF16, I64");
    result.tensors_[name] = {*dtype, std::move(tensor.shape), tensor.offset, tensor.bytes};
  }
  return result;
}

absl::StatusOr<StoredTensor> SafetensorsFile::Find(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) return absl::NotFoundError(absl::StrCat(path(), " has no tensor ", name));
  return found->second;
}

absl::StatusOr<std::string> SafetensorsFile::Read(const StoredTensor& tensor) const {
  std::string bytes(tensor.bytes, '\0');
  if (absl::Status status = file_.Read(tensor.offset, std::as_writable_bytes(std::span(bytes))); !status.ok())
    return status;
  return bytes;
}

std::optional<int64_t> FirstNotFinite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
    case DType::kFp64: return FirstNotFiniteOf<uint64_t>(bytes, uint64_t{0x7ff} << 52);
    case DType::kFp32: return FirstNotFiniteOf<uint32_t>(bytes, uint32_t{0xff} << 23);
    case DType::kBf16: return FirstNotFiniteOf<uint16_t>(bytes, uint16_t{0xff} << 7);
    case DType::kInt64: return std::nullopt;
  }
  return std::nullopt;
}

std::string NotFinite(int64_t element) {
  return absl::StrCat(": element ", element, " is infinite or no number (NaN)");
}

absl::StatusOr<SafetensorsLayout> LayOutSafetensors(const std::vector<TensorEntry>& tensors,
                                                    const std::map<std::string, std::string>& metadata) {
  if (tensors.size() > kMaxSafetensorsTensors) return absl::InvalidArgumentError("too many tensors");
  SafetensorsLayout layout;
  layout.order.resize(tensors.size());
  std::iota(layout.order.begin(), layout.order.end(), 0);
  // Wide elements first: then every tensor is aligned to its element size without padding.
  std::sort(layout.order.begin(), layout.order.end(), [&](size_t a, size_t b) {
    return std::pair(-BitsOfSafetensorsType(tensors[a].type), tensors[a].name) <
           std::pair(-BitsOfSafetensorsType(tensors[b].type), tensors[b].name);
  });
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t offset = 0;
  for (size_t index : layout.order) {
    const TensorEntry& tensor = tensors[index];
    if (BitsOfSafetensorsType(tensor.type) == 0)
      return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": no type ", tensor.type));
    const auto bytes = BytesOf(tensor.type, tensor.shape);
    int64_t end = 0;
    if (!bytes || __builtin_add_overflow(offset, *bytes, &end))
      return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": its shape overflows"));
    if (header.contains(tensor.name)) return absl::InvalidArgumentError(absl::StrCat("two tensors ", tensor.name));
    header[tensor.name] = {{"dtype", tensor.type}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = JsonText(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // spaces after the JSON align the data to 8 bytes
  const uint64_t length = text.size();
  if (length > kMaxSafetensorsHeader)
    return absl::InvalidArgumentError(absl::StrCat("a header of ", length, " bytes is too long"));
  layout.header.assign(reinterpret_cast<const char*>(&length), sizeof length);
  layout.header += text;
  return layout;
}

absl::Status WriteSafetensors(const std::string& path, const std::vector<TensorBytes>& tensors,
                              const std::map<std::string, std::string>& metadata) {
  std::vector<TensorEntry> entries;
  for (const TensorBytes& tensor : tensors) {
    if (BytesOf(SafetensorsTypeName(tensor.dtype), tensor.shape) != static_cast<int64_t>(tensor.bytes.size())) {
      return absl::InvalidArgumentError(absl::StrCat("writing ", path, ": tensor ", tensor.name, " has ",
                                                     tensor.bytes.size(), " bytes, which its shape does not fit"));
    }
    entries.emplace_back(tensor.name, tensor.dtype, tensor.shape);
  }
  const absl::StatusOr<SafetensorsLayout> layout = LayOutSafetensors(entries, metadata);
  if (!layout.ok()) {
    return absl::Status(layout.status().code(), absl::StrCat("writing ", path, ": ", layout.status().message()));
  }
  const std::string temporary = absl::StrCat(path, ".", getpid(), ".tmp");
  const int fd = OpenToWrite(AT_FDCWD, temporary, O_WRONLY | O_CREAT | O_TRUNC);
  std::FILE* file = fd < 0 ? nullptr : fdopen(fd, "wb");
  if (file == nullptr) return Errno("writing", path);
  const auto write = [file](std::string_view bytes) {
    return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  };
  bool whole = write(layout->header);
  for (size_t i = 0; whole && i < layout->order.size(); ++i) whole = write(tensors[layout->order[i]].bytes);
  whole = std::fclose(file) == 0 && whole;
  if (!whole || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const absl::Status status = Errno("writing", path);
    unlink(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace planwright
