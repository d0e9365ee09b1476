// The Mamba-2 scan on a GPU in bf16, by fused kernels. The passes, forward: dt and decays; what each chunk adds to the
// state; the state from chunk to chunk; outputs. Backward: dt and decays again; the gradients of the states likewise,
// from the last chunk to the first; then heads, groups and positions. executor/ops/mamba_scan.cc has the plain form,
// which defines operands and results.
#include "executor/kernels/mamba_scan.h"

#include <ATen/ops/empty.h>

#include <utility>
#include <vector>

#include "executor/ops/documents.h"
#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/planned_types.h"
#include "executor/ops/fast/row_kernels.h"
#include "executor/ops/parameter_part.h"
#include "executor/ops/scan_chunks.h"

namespace planwright::executor::ops {
namespace {

// Heads of 64, a state of 128, chunks of 64 or 128, and a GPU with enough shared memory (Hopper, not Ampere).
bool TakesScan(const ComputeBinding& binding) {
  const auto attribute = [&](const char* name) { return binding.instruction.integer(name); };
  const int64_t heads = attribute("heads"), groups = attribute("groups"), chunk = attribute("chunk");
  if (attribute("inner") != heads * kScanHeadDim || attribute("state") != kScanState || heads % groups != 0)
    return false;
  if (chunk != 64 && chunk != 128) return false;
  for (const at::Tensor& parameter : binding.parameters) {
    if (!InBf16Elements(parameter)) return false;
  }
  const cudaDeviceProp* device = at::cuda::getDeviceProperties(binding.device.index());
  return static_cast<int64_t>(device->sharedMemPerBlockOptin) >= kScanSharedMemory;
}

// The kernels read rows of xbc, which is input `index`, in pieces of 16 bytes, and zxbcdt behind it by elements. Widths
// of xbc are multiples of 64 anyway.
bool LieForScan(const ComputeContext& context, size_t index) {
  const at::Tensor& xbc = context.inputs[index];
  return LiesInVectors(xbc) && context.inputs[index + 1].is_contiguous() && xbc.numel() > 0;
}

// The inputs as the kernels take them, and the factors that forward and backward share.
struct Scan {
  ScanShape shape;
  ScanInputs inputs;
  ScanFactors factors;

  // `xbc`: which input it is. zxbcdt follows. `document_ends`: null where the sequence is one document.
  Scan(const ComputeContext& context, size_t xbc, const at::Tensor* document_ends)
      : options_(context.inputs[xbc].options().dtype(at::kFloat)) {
    const at::Tensor &x = context.inputs[xbc], &zxbcdt = context.inputs[xbc + 1];
    const ScanSizes sizes(context, x);
    TORCH_CHECK(zxbcdt.size(0) == sizes.S && zxbcdt.size(1) == sizes.B && zxbcdt.size(2) >= sizes.g * sizes.r,
                "zxbcdt ", zxbcdt.sizes(), " does not fit xbc ", x.sizes());
    const int64_t chunk = context.instruction.integer("chunk");  // also where the sequence is shorter
    shape = {.positions = sizes.S,
             .samples = sizes.B,
             .chunks = sizes.K,
             .chunk = static_cast<int>(chunk),
             .heads = static_cast<int>(sizes.g * sizes.r),
             .groups = static_cast<int>(sizes.g)};
    const ParameterPart own(context, {sizes.g * sizes.r});
    for (const at::Tensor& parameter : context.parameters) parameters_.push_back(own.Of(parameter));
    inputs = {.xbc = Elements<__nv_bfloat16>(x),
              .zxbcdt = Elements<__nv_bfloat16>(zxbcdt),
              .zxbcdt_width = zxbcdt.size(2),
              .a_log = Elements<__nv_bfloat16>(parameters_[0]),
              .d = Elements<__nv_bfloat16>(parameters_[1]),
              .dt_bias = Elements<__nv_bfloat16>(parameters_[2])};

    by_position_ = Wide({5, by_position()});
    float* factor = Elements<float>(by_position_);
    const auto next = [&] { return std::exchange(factor, factor + by_position()); };
    factors = {.dt = next(), .decay = next(), .from_start = next(), .to_end = next(), .added = next()};
    if (document_ends != nullptr) {
      document_ = DocumentOfPosition(*document_ends, sizes.S, x.device());
      spans_ = at::empty({2, sizes.K * chunk}, options_.dtype(at::kInt));
      inputs.document = Elements<int64_t>(document_);
      factors.document_begin = Elements<int>(spans_);
      factors.document_end = factors.document_begin + sizes.K * chunk;
    }
    LaunchScanFactors(shape, inputs, factors, CurrentStream());
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  }

  at::Tensor Wide(at::IntArrayRef sizes) const { return at::empty(sizes, options_); }
  at::Tensor Narrow(at::IntArrayRef sizes) const { return at::empty(sizes, options_.dtype(at::kBFloat16)); }
  // [chunks, samples, heads, ...]
  std::vector<int64_t> ByHead(std::vector<int64_t> rest) const {
    rest.insert(rest.begin(), {shape.chunks, shape.samples, shape.heads});
    return rest;
  }
  // Elements of a tensor by position.
  int64_t by_position() const { return shape.chunks * shape.samples * shape.heads * shape.chunk; }
  int64_t inner() const { return shape.heads * int64_t{kScanHeadDim}; }

 private:
  at::TensorOptions options_;
  Tensors parameters_;
  at::Tensor by_position_, document_, spans_;
};

}  // namespace

bool TakesMambaScan(const ComputeBinding& binding) { return PlannedInBf16(binding, 2) && TakesScan(binding); }

bool TakesMambaScanGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 3) && binding.inputs[3]->dtype == DType::kFp32 && TakesScan(binding);
}

Tensors FastMambaScan(const ComputeContext& context) {
  if (!LieForScan(context, 0)) return RunMambaScan(context);
  const Scan scan(context, 0, context.inputs.size() > 2 ? &context.inputs[2] : nullptr);
  const at::Tensor states = scan.Wide(scan.ByHead({kScanHeadDim, kScanState}));
  const at::Tensor narrow = scan.Narrow(states.sizes());
  const at::Tensor y = scan.Narrow({scan.shape.positions, scan.shape.samples, scan.inner()});
  const cudaStream_t stream = CurrentStream();
  LaunchScanStates(scan.shape, scan.inputs, scan.factors, Elements<float>(states), Elements<__nv_bfloat16>(narrow),
                   stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  LaunchScanOutput(scan.shape, scan.inputs, scan.factors, Elements<__nv_bfloat16>(narrow), Elements<__nv_bfloat16>(y),
                   stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return {y, states};
}

Tensors FastMambaScanGrad(const ComputeContext& context) {
  const at::Tensor &dy = context.inputs[0], &xbc = context.inputs[1], &states = context.inputs[3];
  if (!LieForScan(context, 1) || !LiesInVectors(dy) || !LiesInVectors(states)) return RunMambaScanGrad(context);
  const Scan scan(context, 1, context.inputs.size() > 4 ? &context.inputs[4] : nullptr);
  const ScanShape& z = scan.shape;
  TORCH_CHECK(dy.size(0) == z.positions && dy.size(1) == z.samples && dy.size(2) == scan.inner(), "dy ", dy.sizes(),
              " does not fit xbc ", xbc.sizes());
  TORCH_CHECK(states.sizes() == at::IntArrayRef(scan.ByHead({kScanHeadDim, kScanState})), "states ", states.sizes(),
              " do not fit xbc ", xbc.sizes());

  const at::Tensor dxbc = scan.Narrow(xbc.sizes()), ddt = scan.Narrow({z.positions, z.samples, z.heads});
  const at::Tensor passed = scan.Narrow(scan.ByHead({kScanHeadDim, 2 * kScanState}));
  const at::Tensor kept = scan.Wide(scan.ByHead({kScanHeadDim}));
  const at::Tensor pairs = scan.Narrow({z.chunks, z.samples, z.groups, z.chunk, z.chunk});
  const at::Tensor by_position = scan.Wide({5, scan.by_position()});
  const at::Tensor parameters = scan.Wide({3, z.chunks * z.samples, z.heads});
  float* values = Elements<float>(by_position);
  const auto next = [&] { return std::exchange(values, values + scan.by_position()); };
  const ScanGradients gradients = {.states = Elements<__nv_bfloat16>(passed),
                                   .kept = Elements<float>(kept),
                                   .pairs = Elements<__nv_bfloat16>(pairs),
                                   .within = next(),
                                   .left = next(),
                                   .read = next(),
                                   .du_x = next(),
                                   .dy_x = next(),
                                   .dxbc = Elements<__nv_bfloat16>(dxbc),
                                   .ddt = Elements<__nv_bfloat16>(ddt),
                                   .parameters = Elements<float>(parameters)};

  const cudaStream_t stream = CurrentStream();
  const __nv_bfloat16* dy_elements = Elements<__nv_bfloat16>(dy);
  LaunchScanStateGradients(z, scan.inputs, scan.factors, dy_elements, Elements<float>(states), gradients, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  LaunchScanHeadGradients(z, scan.inputs, scan.factors, dy_elements, gradients, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  LaunchScanGroupGradients(z, scan.inputs, scan.factors, dy_elements, gradients, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  LaunchScanPositionGradients(z, scan.inputs, scan.factors, gradients, stream);
  C10_CUDA_KERNEL_LAUNCH_CHECK();

  if (context.learns()) {
    const ParameterPart own(context, {z.heads});
    const at::Tensor sums = parameters.sum(1);
    for (int64_t i = 0; i < 3; ++i) own.AddTo(context.gradients[static_cast<size_t>(i)], sums[i]);
  }
  return {dxbc, ddt};
}

}  // namespace planwright::executor::ops
