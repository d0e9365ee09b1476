#include "planner/exchange/logits/logits_batch.h"

#include <vector>

#include "planner/base/text/text.h"

namespace planwright {
namespace {

template <typename Number>
TensorBytes TensorOf(std::string name, DType dtype, std::vector<int64_t> shape, const std::vector<Number>& numbers) {
  return {std::move(name), dtype, std::move(shape),
          std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number))};
}

}  // namespace

absl::Status WriteLogitsBatch(const ReferenceLogits& logits, const Plan& plan, int64_t length,
                              const std::string& path) {
  const std::vector<int64_t> shape = {logits.sequences(), length};
  std::vector<int64_t> ids, labels;
  std::vector<double> mask;
  for (int64_t sequence = 0; sequence < logits.sequences(); ++sequence) {
    const std::vector<int64_t>& tokens = logits.tokens(sequence);
    const auto used = static_cast<int64_t>(tokens.size());
    for (int64_t i = 0; i < length; ++i) {
      ids.push_back(tokens[i % used]);
      labels.push_back(tokens[(i + 1) % used]);
      mask.push_back(i + 1 < used ? 1 : 0);
    }
  }
  std::vector<TensorBytes> tensors = {TensorOf("token_ids", DType::kInt64, shape, ids),
                                      TensorOf("labels", DType::kInt64, shape, labels),
                                      TensorOf("loss_mask", DType::kFp64, shape, mask)};
  if (!plan.data.encoders.empty()) {
    const std::vector<int64_t> none(static_cast<size_t>(logits.sequences()), 0);
    tensors.push_back(TensorOf("images_per_sample", DType::kInt64, {logits.sequences()}, none));
  }
  for (const EncoderData& encoder : plan.data.encoders) {
    const std::string prefix = plan.data.encoders.size() > 1 ? encoder.module + "." : "";
    tensors.push_back({Cat(prefix, "image_grid"), DType::kInt64, {0, 2}, ""});
    tensors.push_back({Cat(prefix, "patches"), DType::kFp64, {0, 3 * encoder.patch * encoder.patch}, ""});
  }
  return WriteSafetensors(path, tensors);
}

}  // namespace planwright
