// The header of a safetensors file, with tensors of every type that the format has. Files come from elsewhere, so
// nothing in them is trusted: sizes are limited and checked for overflow, and the tensors must cover the bytes exactly,
// without gap or overlap. Which types are read as numbers is for the caller to say: safetensors.h,
// planner/state/weights.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_limits.h"

namespace planwright {

inline constexpr uint64_t kMaxSafetensorsHeader = kSafetensorsJson.bytes;
inline constexpr size_t kMaxSafetensorsTensors = 1'000'000;
inline constexpr size_t kMaxSafetensorsRank = 8;  // dims of a tensor

// A tensor as the header has it.
struct HeaderTensor {
  std::string type;  // "BF16", "F8_E4M3"
  std::vector<int64_t> shape;
  int file = -1;                  // for who reads several files: which of them
  int64_t offset = 0, bytes = 0;  // in the file
};

struct SafetensorsHeader {
  std::string text;  // the first bytes of the file, up to where tensors begin
  std::map<std::string, HeaderTensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Reads the header alone. Memory: the text, and what is returned. InvalidArgument with the reason, without the path, if
// it is no valid safetensors file; errors of PlainFile::Read, with the path.
absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const PlainFile& file);

// Bits of an element of a type, by its name in a header; 0: the format has no such type.
int BitsOfSafetensorsType(std::string_view type);

}  // namespace planwright
