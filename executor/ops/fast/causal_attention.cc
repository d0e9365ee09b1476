// Causal attention in bf16, without a score in memory: by cuDNN's kernel or LibTorch's flash kernel
// (flash_attention.h). executor/ops/causal_attention.cc has the plain form, which defines it.
#include "executor/ops/causal_attention.h"

#include "executor/ops/fast/fast_form.h"
#include "executor/ops/fast/flash_attention.h"
#include "executor/ops/fast/planned_types.h"

namespace planwright::executor::ops {
namespace {

// [S,B,heads*d] <-> [B,S,heads,d]
at::Tensor FlashHeads(const AttentionInputs& in, const at::Tensor& x) {
  return x.reshape({x.size(0), x.size(1), x.size(2) / in.head_dim, in.head_dim}).transpose(0, 1);
}
at::Tensor FromFlashHeads(const at::Tensor& x) {
  const at::Tensor by_position = x.transpose(0, 1);
  return by_position.reshape({by_position.size(0), by_position.size(1), x.size(2) * x.size(3)});
}
FlashOperands FlashOperandsOf(const AttentionInputs& in) {
  return {FlashHeads(in, in.q), FlashHeads(in, in.k), FlashHeads(in, in.v), in.scale};
}

Tensors Attention(const ComputeContext& context, AttendedKeys whose) {
  const AttentionInputs in(context, whose, 0, 0);
  const FlashResult result = FlashForward(FlashOperandsOf(in), in.chunks);
  return {FromFlashHeads(result.a), result.lse};
}

Tensors AttentionGrad(const ComputeContext& context, AttendedKeys whose) {
  const AttentionInputs in(context, whose, 1, 2);
  const size_t index = in.apart ? 3 : 2;
  const at::Tensor &da = context.inputs[0], &a = context.inputs[index], &lse = context.inputs[index + 1];
  const FlashGradients d = FlashBackward(FlashOperandsOf(in), in.chunks, FlashHeads(in, da), {FlashHeads(in, a), lse});
  return AttentionGradients(in, FromFlashHeads(d.dq), FromFlashHeads(d.dk), FromFlashHeads(d.dv));
}

}  // namespace

// Of a backward the second input is q.
bool TakesCausalAttention(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && FlashTakesHeads(binding);
}
bool TakesCausalAttentionAllKv(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 1) && FlashTakesHeads(binding);
}
bool TakesCausalAttentionGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && FlashTakesHeads(binding);
}
bool TakesCausalAttentionAllKvGrad(const ComputeBinding& binding) {
  return PlannedInBf16(binding, 2) && FlashTakesHeads(binding);
}

Tensors FastCausalAttention(const ComputeContext& context) { return Attention(context, AttendedKeys::kOwn); }
Tensors FastCausalAttentionAllKv(const ComputeContext& context) { return Attention(context, AttendedKeys::kAll); }
Tensors FastCausalAttentionGrad(const ComputeContext& context) { return AttentionGrad(context, AttendedKeys::kOwn); }
Tensors FastCausalAttentionAllKvGrad(const ComputeContext& context) {
  return AttentionGrad(context, AttendedKeys::kAll);
}

}  // namespace planwright::executor::ops
