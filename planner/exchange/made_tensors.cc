#include "planner/exchange/made_tensors.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/exchange/convert.h"
#include "planner/plan/shard_map.h"
#include "planner/state/dialect/pixel_norm.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

OutTensor Tensor(std::string name, DType dtype, std::vector<int64_t> shape) {
  const int64_t bytes = ElementsOf(shape) * DTypeBytes(dtype);
  return {std::move(name), SafetensorsTypeName(dtype), std::move(shape), bytes, true, {}};
}

// A tensor of few elements.
OutTensor Small(std::string name, DType dtype, std::vector<int64_t> shape, std::string content) {
  OutTensor tensor = Tensor(std::move(name), dtype, std::move(shape));
  tensor.read = [content = std::move(content)](int64_t first, std::span<std::byte> to) {
    std::memcpy(to.data(), content.data() + first, to.size());
    return absl::OkStatus();
  };
  return tensor;
}

// A tensor whose elements all are `number`.
OutTensor Filled(std::string name, DType dtype, std::vector<int64_t> shape, float number) {
  OutTensor tensor = Tensor(std::move(name), dtype, std::move(shape));
  tensor.read = [dtype, number](int64_t, std::span<std::byte> to) {
    std::byte element[8];
    const size_t width = DTypeBytes(dtype);
    ConvertNumbers(DType::kFp32, std::as_bytes(std::span(&number, 1)), dtype, std::span(element).first(width));
    for (size_t at = 0; at < to.size(); at += width) std::memcpy(to.data() + at, element, width);
    return absl::OkStatus();
  };
  return tensor;
}

template <typename T>
std::string BytesOf(const std::vector<T>& numbers) {
  return std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T));
}

}  // namespace

ClassTokenSplit SplitClassTokens(int64_t class_tokens) {
  // As many class tokens as transformers' radio has by default, and the others registers.
  ClassTokenSplit split{.cls = std::min<int64_t>(class_tokens, 3)};
  split.registers = class_tokens - split.cls;
  for (int64_t i = 0; i < std::min<int64_t>(split.cls, 2); ++i) split.summary.push_back(i);
  return split;
}

std::vector<OutTensor> MadeTensors(const EncoderSizes& encoder, ConfigKind kind, DType dtype,
                                   std::vector<std::string>& made_up) {
  std::vector<OutTensor> tensors;
  const std::string prefix = kind == ConfigKind::kEncoder ? "radio_model." : "vision_model.radio_model.";
  const int64_t hidden = encoder.hidden.value, patch = 3 * encoder.patch.value * encoder.patch.value;
  for (int64_t layer = 0; layer < encoder.layers.value; ++layer) {
    for (const char* scale : {"layer_scale1", "layer_scale2"}) {
      tensors.push_back(
          Filled(absl::StrCat(prefix, "model.blocks.", layer, ".", scale, ".lambda1"), dtype, {hidden}, 1.0F));
    }
  }
  made_up.push_back(prefix + "model.blocks.*.layer_scale*.lambda1: ones, as blocks of a run have no scale");
  const ClassTokenSplit split = SplitClassTokens(encoder.class_tokens.value);
  tensors.push_back(Small(prefix + "summary_idxs", DType::kInt64, {static_cast<int64_t>(split.summary.size())},
                          BytesOf(split.summary)));
  tensors.back().parameter = false;
  made_up.push_back(absl::StrCat(prefix, "summary_idxs, num_cls_tokens ", split.cls, " and num_registers ",
                                 split.registers, ": a run does not tell class tokens apart"));
  if (kind == ConfigKind::kVisionLanguage) {
    tensors.push_back(
        Filled(prefix + "model.patch_generator.video_embedder.weight", dtype, {hidden, kVideoFrames * patch}, 0.0F));
    made_up.push_back(prefix + "model.patch_generator.video_embedder.weight: zeros, as videos are not trained");
  } else {
    const auto floats = [](const std::array<double, 3>& numbers) {
      return BytesOf(std::vector<float>(numbers.begin(), numbers.end()));
    };
    tensors.push_back(Small(prefix + "input_conditioner.norm_mean", DType::kFp32, {3, 1, 1}, floats(kPixelMean)));
    tensors.back().parameter = false;
    tensors.push_back(Small(prefix + "input_conditioner.norm_std", DType::kFp32, {3, 1, 1}, floats(kPixelDeviation)));
    tensors.back().parameter = false;
    made_up.push_back(prefix +
                      "input_conditioner.*: mean and deviation of CLIP, by which a run's images are normalized");
  }
  return tensors;
}

}  // namespace planwright
