// The zigzag cut of a sequence over context parallelism (docs/layouts/sequence.md#zigzag). The sequence is 2 n chunks
// of equal length; coordinate r of n has the chunks r and 2 n - 1 - r, in this order.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include <cstdint>

namespace planwright::executor {

// Length of a chunk. c10::Error if `dim` of `x` cannot be cut.
inline int64_t ZigzagChunk(const at::Tensor& x, int64_t dim, int64_t coordinates) {
  TORCH_CHECK(x.size(dim) % (2 * coordinates) == 0, "dim ", dim, " of ", x.sizes(), " cannot be cut in ",
              2 * coordinates, " equal chunks");
  return x.size(dim) / (2 * coordinates);
}

// The part of coordinate `r`, as a new tensor.
inline at::Tensor ZigzagPart(const at::Tensor& x, int64_t dim, int64_t r, int64_t coordinates) {
  const int64_t chunk = ZigzagChunk(x, dim, coordinates);
  return at::cat({x.narrow(dim, r * chunk, chunk), x.narrow(dim, (2 * coordinates - 1 - r) * chunk, chunk)}, dim);
}

}  // namespace planwright::executor
