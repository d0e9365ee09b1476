#include "tests/executor/ops/reference.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>
#include <limits>
#include <vector>

namespace planwright::executor::reference {
namespace {

at::Tensor Silu(const at::Tensor& x) { return x / (1 + (-x).exp()); }

// Top k of each row by repeated search of the first largest: 0 or 1, [T,E].
at::Tensor TopK(const at::Tensor& scores, int64_t top_k) {
  const at::Tensor chosen = at::zeros_like(scores);
  for (int64_t t = 0; t < scores.size(0); ++t) {
    for (int64_t j = 0; j < top_k; ++j) {
      int64_t best = -1;
      double best_score = 0;
      for (int64_t e = 0; e < scores.size(1); ++e) {
        const double score = scores[t][e].item<double>();
        if (chosen[t][e].item<double>() == 0 && (best < 0 || score > best_score)) {
          best = e;
          best_score = score;
        }
      }
      chosen[t][best].fill_(1);
    }
  }
  return chosen;
}

}  // namespace

at::Tensor RmsNorm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x / ((x * x).mean(-1, true) + eps).sqrt() * weight;
}

at::Tensor LayerNorm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps) {
  const at::Tensor centred = x - x.mean(-1, true);
  return centred / ((centred * centred).mean(-1, true) + eps).sqrt() * weight + bias;
}

at::Tensor Gelu(const at::Tensor& x) {
  return x * 0.5 * (1 + (std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)).tanh());
}

at::Tensor GeluByErf(const at::Tensor& x) { return x * 0.5 * (1 + (x / std::sqrt(2.0)).erf()); }

at::Tensor MambaConv(const MambaSizes& z, const at::Tensor& zxbcdt, const at::Tensor& weight, const at::Tensor& bias) {
  const at::Tensor x = zxbcdt.narrow(2, z.inner(), z.inner() + 2 * z.bc());
  const int64_t width = weight.size(2);
  std::vector<at::Tensor> y;
  for (int64_t t = 0; t < x.size(0); ++t) {
    at::Tensor sum = bias.expand_as(x[t]);
    for (int64_t j = 0; j < width; ++j) {
      const int64_t from = t - (width - 1) + j;
      if (from >= 0) sum = sum + x[from] * weight.select(2, j).select(1, 0);
    }
    y.push_back(Silu(sum));
  }
  return at::stack(y);
}

at::Tensor MambaScan(const MambaSizes& z, const at::Tensor& xbc, const at::Tensor& zxbcdt, const at::Tensor& A_log,
                     const at::Tensor& D, const at::Tensor& dt_bias) {
  const int64_t samples = xbc.size(1);
  at::Tensor state = at::zeros({samples, z.heads, z.head_dim, z.state}, xbc.options());
  std::vector<at::Tensor> y;
  for (int64_t t = 0; t < xbc.size(0); ++t) {
    const at::Tensor x = xbc[t].narrow(1, 0, z.inner()).reshape({samples, z.heads, z.head_dim});
    const auto of_heads = [&](int64_t first) {  // head i reads group i / (heads / groups)
      std::vector<at::Tensor> heads;
      const at::Tensor groups = xbc[t].narrow(1, first, z.bc()).reshape({samples, z.groups, z.state});
      for (int64_t i = 0; i < z.heads; ++i) heads.push_back(groups.select(1, i / (z.heads / z.groups)));
      return at::stack(heads, 1);  // [B,h,n]
    };
    const at::Tensor b = of_heads(z.inner()), c = of_heads(z.inner() + z.bc());
    // [B,h]
    const at::Tensor dt = (1 + (zxbcdt[t].narrow(1, 2 * z.inner() + 2 * z.bc(), z.heads) + dt_bias).exp()).log();
    const at::Tensor keep = (dt * -A_log.exp()).exp();
    state = keep.unsqueeze(-1).unsqueeze(-1) * state + (dt.unsqueeze(-1) * x).unsqueeze(-1) * b.unsqueeze(2);
    y.push_back(((state * c.unsqueeze(2)).sum(-1) + D.unsqueeze(-1) * x).reshape({samples, z.inner()}));
  }
  return at::stack(y);
}

at::Tensor GatedNorm(const MambaSizes& z, const at::Tensor& y, const at::Tensor& zxbcdt, const at::Tensor& weight,
                     double eps) {
  const at::Tensor gated = y * Silu(zxbcdt.narrow(2, 0, z.inner()));
  const int64_t width = z.inner() / z.groups;
  std::vector<at::Tensor> groups;
  for (int64_t g = 0; g < z.groups; ++g) {
    groups.push_back(RmsNorm(gated.narrow(2, g * width, width), weight.narrow(0, g * width, width), eps));
  }
  return at::cat(groups, 2);
}

at::Tensor CausalAttention(const at::Tensor& qkv, int64_t q_heads, int64_t kv_heads, int64_t head_dim) {
  const int64_t S = qkv.size(0);
  // [B,S,d]
  const auto head = [&](int64_t index) { return qkv.narrow(2, index * head_dim, head_dim).transpose(0, 1); };
  const at::Tensor later = at::zeros({S, S}, qkv.options()).fill_(1).triu(1).to(at::kBool);
  std::vector<at::Tensor> heads;
  for (int64_t i = 0; i < q_heads; ++i) {
    const int64_t kv = q_heads + i / (q_heads / kv_heads);
    const at::Tensor scores = head(i).matmul(head(kv).transpose(1, 2)) / std::sqrt(static_cast<double>(head_dim));
    const at::Tensor p = at::softmax(scores.masked_fill(later, -std::numeric_limits<double>::infinity()), -1);
    heads.push_back(p.matmul(head(kv + kv_heads)).transpose(0, 1));
  }
  return at::cat(heads, 2);
}

Routing Route(const at::Tensor& n, const at::Tensor& gate, const at::Tensor& bias, int64_t top_k, bool normalized,
              double scale) {
  const at::Tensor scores = 1 / (1 + (-n.matmul(gate.t())).exp());
  Routing routing;
  routing.chosen = TopK((scores + bias).detach(), top_k);
  routing.aux_chosen = TopK(scores.detach(), top_k);
  const at::Tensor chosen = scores * routing.chosen;
  routing.weights = (normalized ? chosen / chosen.sum(-1, true) : chosen) * scale;
  routing.probs = scores / scores.sum(-1, true);
  return routing;
}

at::Tensor AuxLoss(const Routing& routing, int64_t samples, int64_t top_k) {
  const int64_t experts = routing.probs.size(1), sequence = routing.probs.size(0) / samples;
  const at::Tensor p = routing.probs.reshape({sequence, samples, experts}).sum(0);
  const at::Tensor c = routing.aux_chosen.reshape({sequence, samples, experts}).sum(0);
  return (p * c).sum() * (static_cast<double>(experts) / static_cast<double>(top_k * sequence * sequence));
}

at::Tensor DenseExperts(const at::Tensor& n, const at::Tensor& weights, const at::Tensor& up, const at::Tensor& down) {
  at::Tensor sum = at::zeros({n.size(0), down.size(1)}, n.options());
  for (int64_t e = 0; e < up.size(0); ++e) {
    const at::Tensor h = n.matmul(up[e].t()).relu();
    sum = sum + (h * h * weights.select(1, e).unsqueeze(-1)).matmul(down[e].t());
  }
  return sum;
}

at::Tensor CrossEntropy(const at::Tensor& logits, const at::Tensor& labels, const at::Tensor& mask) {
  const at::Tensor log_p = at::log_softmax(logits, -1);
  at::Tensor sum = at::zeros({}, logits.options());
  for (int64_t b = 0; b < labels.size(0); ++b) {
    for (int64_t s = 0; s < labels.size(1); ++s) {
      const double weight = mask[b][s].item<double>();
      if (weight != 0) sum = sum - log_p[s][b][labels[b][s].item<int64_t>()] * weight;
    }
  }
  return sum;
}

}  // namespace planwright::executor::reference
