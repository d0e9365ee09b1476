// A tensor that leaves in a folder, and where its bytes come from: piece by piece, so that no tensor needs to be in
// memory as a whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace planwright {

// Bytes of one piece at most, of any tensor.
inline constexpr int64_t kExportPiece = int64_t{16} << 20;

struct OutTensor {
  std::string name, type;  // "BF16", as in headers
  std::vector<int64_t> shape;
  int64_t bytes = 0;
  // The number of a model's parameters counts it. Not a buffer, such as the expert bias.
  bool parameter = true;
  // Fills `to` with the bytes of the tensor from `first` on. Called with ascending pieces of at most kExportPiece
  // bytes, which are multiples of 8 but for the last.
  std::function<absl::Status(int64_t first, std::span<std::byte> to)> read;
};

}  // namespace planwright
