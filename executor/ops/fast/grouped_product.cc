#include "executor/ops/fast/grouped_product.h"

#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAException.h>

#include "executor/kernels/grouped_product.h"
#include "executor/kernels/outer_products.h"
#include "executor/kernels/run_products.h"

namespace planwright::executor::ops {
namespace {

void CheckRuns(const at::Tensor& rows, const at::Tensor& ends, int64_t experts) {
  TORCH_CHECK(rows.is_cuda() && ends.is_cuda() && ends.scalar_type() == at::kInt && ends.is_contiguous() &&
                  ends.dim() > 0 && ends.dim() < 3 && ends.size(-1) == experts,
              "ends must be i32 [", experts, "] or [parts, ", experts, "], contiguous and on the rows' GPU; got ",
              ends.toString(), " ", ends.sizes());
}

int64_t PartsOf(const at::Tensor& ends) { return ends.dim() == 2 ? ends.size(0) : 1; }

__nv_bfloat16* BFloat16(const at::Tensor& tensor) { return static_cast<__nv_bfloat16*>(tensor.data_ptr()); }

OuterProducts TaskOf(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, int64_t parts) {
  return {.sums = sums.mutable_data_ptr<float>(),
          .a = BFloat16(a),
          .b = BFloat16(b),
          .parts = parts,
          .runs = sums.size(0),
          .rows = a.size(0),
          .inner = sums.size(1),
          .width = sums.size(2)};
}

// `out` and the ends are still to come.
RunProducts TaskOf(const at::Tensor& x, const at::Tensor& matrices, int64_t parts) {
  return {.x = BFloat16(x),
          .matrices = BFloat16(matrices),
          .transposed = !matrices.is_contiguous(),
          .parts = parts,
          .runs = matrices.size(0),
          .rows = x.size(0),
          .inner = matrices.size(1),
          .width = matrices.size(2)};
}

}  // namespace

bool MultipliesOnHopper(const at::Tensor& x, const at::Tensor& matrices, int64_t parts) {
  const bool bf16 = x.is_cuda() && x.scalar_type() == at::kBFloat16 && matrices.scalar_type() == at::kBFloat16 &&
                    x.is_contiguous() && (matrices.is_contiguous() || matrices.transpose(1, 2).is_contiguous());
  return bf16 && HopperTakes(TaskOf(x, matrices, parts));
}

at::Tensor GroupedProduct(const at::Tensor& x, const at::Tensor& matrices, const at::Tensor& ends) {
  CheckRuns(x, ends, matrices.size(0));
  const at::Tensor rows = x.contiguous();
  const at::Tensor out = at::empty({x.size(0), matrices.size(2)}, x.options());
  TORCH_CHECK(x.size(1) == matrices.size(1) && x.scalar_type() == matrices.scalar_type(), "rows ", x.sizes(),
              " do not fit matrices ", matrices.sizes());
  if (out.numel() == 0) return out;
  const GroupedShape shape = {ends.const_data_ptr<int>(), matrices.size(0), x.size(0), matrices.size(1),
                              matrices.size(2)};
  const MatrixStrides strides = {matrices.stride(0), matrices.stride(1), matrices.stride(2)};
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  const int64_t parts = PartsOf(ends);
  if (MultipliesOnHopper(rows, matrices, parts)) {
    RunProducts task = TaskOf(rows, matrices, parts);
    task.out = BFloat16(out), task.ends = shape.ends;
    C10_CUDA_CHECK(LaunchProductsOfRuns(task, stream));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
  }
  TORCH_CHECK(parts == 1, "only Hopper's kernel takes runs in parts");
  const auto launch = [&](auto* to, const auto* from, const auto* by) {
    LaunchGroupedProduct(from, by, strides, to, shape, stream);
  };
  switch (x.scalar_type()) {
    case at::kDouble:
      launch(out.mutable_data_ptr<double>(), rows.const_data_ptr<double>(), matrices.const_data_ptr<double>());
      break;
    case at::kFloat:
      launch(out.mutable_data_ptr<float>(), rows.const_data_ptr<float>(), matrices.const_data_ptr<float>());
      break;
    case at::kBFloat16: launch(BFloat16(out), BFloat16(rows), BFloat16(matrices)); break;
    default: TORCH_CHECK(false, "no grouped product of type ", x.scalar_type());
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return out;
}

void AddGroupedOuterProducts(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, const at::Tensor& ends,
                             bool writes) {
  CheckRuns(a, ends, sums.size(0));
  TORCH_CHECK(sums.is_contiguous() && a.size(0) == b.size(0) && a.size(1) == sums.size(1) &&
                  b.size(1) == sums.size(2) && a.scalar_type() == b.scalar_type(),
              "outer products of rows ", a.sizes(), " and ", b.sizes(), " do not fit sums ", sums.sizes());
  if (sums.numel() == 0) return;
  const at::Tensor left = a.contiguous(), right = b.contiguous();
  const int64_t parts = PartsOf(ends);
  const bool tensor_cores = AddsOuterProductsOnTensorCores(sums, left, right, parts),
             hopper = tensor_cores && HopperTakes(TaskOf(sums, left, right, parts));
  TORCH_CHECK(hopper || parts == 1, "only Hopper's kernel takes runs in parts");
  if (writes && !hopper) sums.zero_();
  if (a.size(0) == 0) return;
  const GroupedShape shape = {ends.const_data_ptr<int>(), sums.size(0), a.size(0), sums.size(1), sums.size(2)};
  const cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  const auto launch = [&](auto* to, const auto* x, const auto* y) {
    LaunchGroupedOuterProducts(to, x, y, shape, stream);
  };
  if (tensor_cores) {
    OuterProducts task = TaskOf(sums, left, right, parts);
    task.ends = shape.ends, task.writes = writes && hopper;
    C10_CUDA_CHECK(hopper ? LaunchAddOuterProductsOfRuns(task, stream)
                          : LaunchAddOuterProductsOfRunsSimple(task, stream));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return;
  }
  switch (a.scalar_type()) {
    case at::kDouble:
      launch(sums.mutable_data_ptr<double>(), left.const_data_ptr<double>(), right.const_data_ptr<double>());
      break;
    case at::kFloat:
      launch(sums.mutable_data_ptr<float>(), left.const_data_ptr<float>(), right.const_data_ptr<float>());
      break;
    case at::kBFloat16: launch(sums.mutable_data_ptr<float>(), BFloat16(left), BFloat16(right)); break;
    default: TORCH_CHECK(false, "no grouped outer products of type ", a.scalar_type());
  }
  C10_CUDA_KERNEL_LAUNCH_CHECK();
}

bool AddsOuterProductsOnTensorCores(const at::Tensor& sums, const at::Tensor& a, const at::Tensor& b, int64_t parts) {
  const bool bf16 = a.is_cuda() && a.scalar_type() == at::kBFloat16 && b.scalar_type() == at::kBFloat16 &&
                    sums.scalar_type() == at::kFloat && sums.is_contiguous() && a.is_contiguous() && b.is_contiguous();
  if (!bf16) return false;
  const OuterProducts task = TaskOf(sums, a, b, parts);
  return HopperTakes(task) || SimpleFormTakes(task);
}

}  // namespace planwright::executor::ops
