// The gradient of an embedding table by the kernel of executor/kernels/embedding.h.
#pragma once

#include <ATen/core/Tensor.h>

namespace planwright::executor::ops {

// Whether the kernel takes these: de in bf16 on a GPU, whose width is a multiple of 8, and an fp32 table.
bool TakesTokenRowsKernel(const at::Tensor& gradient, const at::Tensor& de);

// gradient [V,H] += the rows of de [...,H] at their rows of the table, i64 of de's leading sizes in any shape. A row
// that is not in the table is V.
void AddTokenRowsOnGpu(const at::Tensor& gradient, const at::Tensor& rows, const at::Tensor& de);

}  // namespace planwright::executor::ops
