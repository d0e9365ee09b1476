// The documents of a packed sample (docs/training/data.md#packed-documents). Handlers get the ends of the documents,
// i64 [D] in host memory, as their last input.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace planwright::executor::ops {

// c10::Error unless the ends are on the host, ascend and finish with `sequence`.
std::vector<int64_t> DocumentEnds(const at::Tensor& document_ends, int64_t sequence);

// The number of the document of each position, i64 [sequence], on `device`. The host does not wait.
at::Tensor DocumentOfPosition(const at::Tensor& document_ends, int64_t sequence, at::Device device);

}  // namespace planwright::executor::ops
