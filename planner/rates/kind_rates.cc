#include "planner/rates/kind_rates.h"

namespace planwright {

std::array<KindRate, kOpKinds> ShippedKindRates() {
  std::array<KindRate, kOpKinds> rates;
  const auto set = [&](OpKind kind, KindRate rate) { rates[static_cast<size_t>(kind)] = rate; };
  set(OpKind::kExperts, {.products = 0.58, .beside = 0.1});
  // Weight gradients are sums in fp32 that come from memory and go back.
  set(OpKind::kExpertsGrad, {.products = 0.58, .beside = 0.45});
  set(OpKind::kCausalAttention, {.products = 0.58});
  set(OpKind::kCausalAttentionAllKv, {.products = 0.58});
  // Its FLOPs are counted as twice those of the forward, and it computes the scores a second time.
  set(OpKind::kCausalAttentionGrad, {.products = 0.39});
  set(OpKind::kCausalAttentionAllKvGrad, {.products = 0.39});
  // Heads of 80 features fill the tensor cores badly.
  set(OpKind::kPackedAttention, {.products = 0.38});
  set(OpKind::kPackedAttentionGrad, {.products = 0.33});
  // Chains of kernels whose products are small: bytes decide.
  set(OpKind::kMambaScan, {.passes = 3});
  set(OpKind::kMambaScanGrad, {.passes = 4.7});
  set(OpKind::kMambaConv, {.passes = 1.3});
  set(OpKind::kMambaConvGrad, {.passes = 2.6});
  set(OpKind::kRoute, {.passes = 2});
  set(OpKind::kRouteGrad, {.passes = 2});
  set(OpKind::kPermuteRows, {.passes = 1.2});
  set(OpKind::kSelectRows, {.passes = 1.2});
  return rates;
}

}  // namespace planwright
