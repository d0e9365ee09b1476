// Slow and plain forms of the language model's operations, written as docs/model/ defines them: one position, one head,
// one expert at a time. Autograd works on them, so they check forward and backward.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace planwright::executor::reference {

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps);
at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps);
at::Tensor Gelu(const at::Tensor& x);  // tanh form
at::Tensor GeluByErf(const at::Tensor& x);

struct MambaSizes {
  int64_t heads, groups, head_dim, state;
  int64_t inner() const { return heads * head_dim; }
  int64_t bc() const { return groups * state; }
};

// zxbcdt [S,B,2 inner + 2 bc + heads] -> xbc [S,B,inner + 2 bc]
at::Tensor MambaConv(const MambaSizes& sizes, const at::Tensor& zxbcdt, const at::Tensor& weight,
                     const at::Tensor& bias);
// The scan, position by position -> y [S,B,inner]
at::Tensor MambaScan(const MambaSizes& sizes, const at::Tensor& xbc, const at::Tensor& zxbcdt, const at::Tensor& A_log,
                     const at::Tensor& D, const at::Tensor& dt_bias);
at::Tensor GatedNorm(const MambaSizes& sizes, const at::Tensor& y, const at::Tensor& zxbcdt, const at::Tensor& weight,
                     double eps);

// Dense causal softmax attention, head by head: qkv [S,B,(q + 2 kv) d] -> [S,B,q d]
at::Tensor CausalAttention(const at::Tensor& qkv, int64_t q_heads, int64_t kv_heads, int64_t head_dim);

struct Routing {
  at::Tensor weights;     // [T,E], zero where not chosen
  at::Tensor probs;       // [T,E]
  at::Tensor chosen;      // [T,E] 0 or 1, with the bias
  at::Tensor aux_chosen;  // [T,E] 0 or 1, without it
};
// n [T,H]. normalized: the weights of a token are divided by their sum.
Routing Route(const at::Tensor& n, const at::Tensor& gate, const at::Tensor& bias, int64_t top_k, bool normalized,
              double scale);
// The auxiliary loss summed over samples, without coefficient and 1/B
// (docs/model/mixture_of_experts.md#auxiliary-loss). Token t is position * samples + sample.
at::Tensor AuxLoss(const Routing& routing, int64_t samples, int64_t top_k);
// Every expert on every token.
at::Tensor DenseExperts(const at::Tensor& n, const at::Tensor& weights, const at::Tensor& up, const at::Tensor& down);

// Masked sum of the cross entropy over the whole vocabulary: logits [S,B,V], labels and mask [B,S].
at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& mask);

}  // namespace planwright::executor::reference
