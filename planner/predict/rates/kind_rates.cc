#include "planner/predict/rates/kind_rates.h"

namespace planwright {

std::array<KindRate, kOpKinds> ShippedKindRates() {
  std::array<KindRate, kOpKinds> rates;
  const auto set = [&](OpKind kind, KindRate rate) { rates[static_cast<size_t>(kind)] = rate; };
  // The smaller a product, the more its operands weigh: hidden sizes of 2688 reach 0.70 of the peak, 1280 reach 0.58.
  for (OpKind kind : {OpKind::kLinear, OpKind::kLinearInputGrad})
    set(kind, {.products = 0.9, .passes = 0, .beside = 2});
  // Sums of gradients come and go in fp32 while it computes.
  set(OpKind::kLinearWeightGrad, {.products = 0.9, .passes = 0, .beside = 1.3});
  set(OpKind::kExperts, {.products = 0.58, .beside = 0.1});
  set(OpKind::kExpertsGrad, {.products = 0.58, .beside = 0.21});
  set(OpKind::kCausalAttention, {.products = 0.53});
  set(OpKind::kCausalAttentionAllKv, {.products = 0.53});
  // Its FLOPs are counted as twice those of the forward, and it computes the scores a second time.
  set(OpKind::kCausalAttentionGrad, {.products = 0.36});
  set(OpKind::kCausalAttentionAllKvGrad, {.products = 0.36});
  // Heads of 80 features fill the tensor cores badly.
  set(OpKind::kPackedAttention, {.products = 0.38});
  set(OpKind::kPackedAttentionGrad, {.products = 0.33});
  // Chains of kernels whose products are small: bytes decide.
  set(OpKind::kMambaScan, {.passes = 2.7});
  set(OpKind::kMambaScanGrad, {.passes = 4.2});
  set(OpKind::kMambaConv, {.passes = 1.3});
  set(OpKind::kMambaConvGrad, {.passes = 2.6});
  set(OpKind::kRoute, {.passes = 2});
  set(OpKind::kRouteGrad, {.passes = 2});
  set(OpKind::kPermuteRows, {.passes = 1.2});
  set(OpKind::kSelectRows, {.passes = 1.2});
  // Long streams of numbers reach 0.87 of the memory's speed.
  for (OpKind kind : {OpKind::kBeginStep, OpKind::kScaleGradients, OpKind::kSquareNorm, OpKind::kAdamW})
    set(kind, {.passes = 0.92});
  return rates;
}

}  // namespace planwright
