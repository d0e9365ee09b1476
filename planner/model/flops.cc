#include "planner/model/flops.h"

#include <cmath>
#include <string>

#include "planner/diagnostics/bug.h"

namespace planwright {
namespace {

int64_t MambaFlops(const HybridLmModel& model) {
  const auto& mamba = model.mamba;
  const int64_t inner = mamba.heads * mamba.head_dim, bc = mamba.groups * mamba.state;
  const int64_t in_rows = 2 * inner + 2 * bc + mamba.heads;
  return 2 * model.hidden * in_rows + 2 * inner * model.hidden + 7 * inner * mamba.state;
}

int64_t AttentionFlops(const HybridLmModel& model, int64_t sequence) {
  const int64_t q = model.attention.heads * model.attention.head_dim, kv = model.attention.kv_groups * model.attention.head_dim;
  return 2 * model.hidden * (q + 2 * kv) + 2 * q * model.hidden + 2 * sequence * q;
}

int64_t MoeFlops(const HybridLmModel& model) {
  const auto& moe = model.moe;
  return 2 * model.hidden * moe.experts + moe.top_k * 4 * model.hidden * moe.ffn + 4 * model.hidden * moe.shared_ffn;
}

}  // namespace

int64_t LayerForwardFlops(char kind, const HybridLmModel& model, int64_t sequence) {
  switch (kind) {
    case 'M': return MambaFlops(model);
    case '*': return AttentionFlops(model, sequence);
    case 'E': return MoeFlops(model);
  }
  Bug("layer kind " + std::string(1, kind) + " passed the pattern check");
}

int64_t MixingForwardFlops(char kind, const HybridLmModel& model, int64_t sequence) {
  switch (kind) {
    case 'M': return 7 * model.mamba.heads * model.mamba.head_dim * model.mamba.state;
    case '*': return 2 * sequence * model.attention.heads * model.attention.head_dim;
    default: return 0;
  }
}

int64_t HeadForwardFlops(const HybridLmModel& model) { return 2 * model.hidden * model.vocabulary; }

BlockFlops BlockForwardFlops(const RadioVitModel& model, const std::vector<int64_t>& patches) {
  const int64_t h = model.hidden, row = 2 * h * 3 * h + 2 * h * h + 4 * h * model.ffn;
  double all = 0, linear = 0, mixing = 0;
  for (int64_t count : patches) {
    const double rows = static_cast<double>(count + model.class_tokens);
    all += static_cast<double>(count);
    linear += rows * static_cast<double>(row);
    mixing += 4 * rows * rows * static_cast<double>(h);
  }
  if (all == 0) return {};
  return {std::llround((linear + mixing) / all), std::llround(mixing / all)};
}

int64_t EmbedderForwardFlops(const RadioVitModel& model) { return 2 * 3 * model.patch * model.patch * model.hidden; }

int64_t ProjectorForwardFlops(const RadioVitModel& model, int64_t output_width) {
  const int64_t merged = model.pixel_shuffle * model.pixel_shuffle, wide = model.hidden * merged;
  return 2 * model.projector_hidden * (wide + output_width) / merged;
}

}  // namespace planwright
