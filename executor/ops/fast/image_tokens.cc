// Rows of images at image tokens, by kernels (executor/kernels/image_tokens.h). The plain forms, which define them, are
// in executor/ops/embedding.cc. They also take parts of a sequence.
#include "executor/kernels/image_tokens.h"

#include <ATen/ops/_assert_async.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <limits>

#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"

namespace planwright::executor::ops {
namespace {

using Bf16 = __nv_bfloat16;

// Inputs: values, rows of images, tokens.
bool TakesRows(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && InWholeVectors(*binding.inputs[0]);
}

// Whether the values are whole sequences of a batch that is not too large, and there are rows.
bool FitsKernels(const ComputeContext& context) {
  const at::Tensor &x = context.inputs[0], &rows = context.inputs[1], &tokens = context.inputs[2];
  return LieInVectors(context, 2) && x.numel() > 0 && rows.numel() > 0 && tokens.is_contiguous() &&
         x.size(0) == tokens.size(1) && tokens.numel() <= std::numeric_limits<int>::max();
}

Tensors Put(const ComputeContext& context, bool add) {
  const at::Tensor &x = context.inputs[0], &rows = context.inputs[1], &tokens = context.inputs[2];
  const ImageTokens all = {.ids = Elements<int64_t>(tokens),
                           .samples = tokens.size(0),
                           .positions = tokens.size(1),
                           .image_token = context.instruction.integer("image_token")};
  TORCH_CHECK(x.numel() == all.count() * rows.size(-1), "values of ", x.sizes(), " and rows of ", rows.sizes(), " for ",
              tokens.sizes(), " tokens");
  const at::Tensor row = at::empty({all.count()}, tokens.options().dtype(at::kInt)),
                   places = at::empty({rows.size(0)}, tokens.options()),
                   right = at::empty({1}, tokens.options().dtype(at::kBool)), y = at::empty_like(x);
  LaunchPlaceImageTokens(all, rows.size(0), Elements<int>(row), Elements<int64_t>(places),
                         static_cast<bool*>(right.data_ptr()), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  at::_assert_async(right);  // on the device: the host does not wait
  LaunchPutImageRows(Elements<Bf16>(x), Elements<Bf16>(rows), Elements<int>(row), add, Elements<Bf16>(y), all.count(),
                     rows.size(-1), CurrentStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y, places};
}

}  // namespace

bool TakesMergeImages(const ComputeBinding& binding) { return TakesRows(binding); }
bool TakesAddImages(const ComputeBinding& binding) { return TakesRows(binding); }

Tensors FastMergeImages(const ComputeContext& context) {
  return FitsKernels(context) ? Put(context, false) : RunMergeImages(context);
}
Tensors FastAddImages(const ComputeContext& context) {
  return FitsKernels(context) ? Put(context, true) : RunAddImages(context);
}

}  // namespace planwright::executor::ops
