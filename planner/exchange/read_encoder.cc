#include "planner/exchange/read_encoder.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/exchange/read_language.h"
#include "planner/state/dialect/pixel_norm.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;

bool AreNumbers(const Json& list, const std::array<double, 3>& expected) {
  if (!list.is_array() || list.size() != expected.size()) return false;
  for (size_t i = 0; i < expected.size(); ++i) {
    // Files may have them as they are in fp32.
    if (!list[i].is_number() || std::fabs(list[i].get<double>() - expected[i]) > 1e-6) return false;
  }
  return true;
}

// The norm between the last block and the projector. Megatron-Core builds one where the language model predicts several
// tokens, and the weights were trained with it then; else there is none.
Sourced<std::string> FinalNorm(const Sourced<int64_t>& mtp_layers) {
  if (mtp_layers.value > 0) return {"layernorm", mtp_layers.from + " > 0"};
  return {"none", mtp_layers.from.empty() ? "no num_nextn_predict_layers" : mtp_layers.from + " = 0"};
}

// Sizes of the ViTs that RADIO's code names (timm).
struct NamedVit {
  std::string_view name;
  int64_t hidden, layers, heads, ffn;
};
constexpr NamedVit kVits[] = {{"vit_small_patch16_224", 384, 12, 6, 1536},
                              {"vit_base_patch16_224", 768, 12, 12, 3072},
                              {"vit_large_patch16_224", 1024, 24, 16, 4096},
                              {"vit_huge_patch16_224", 1280, 32, 16, 5120}};

// A size by its own key, or that of the named ViT; both must say the same.
Sourced<int64_t> SizeOfVit(ConfigKeys& keys, const char* key, const NamedVit* vit, int64_t NamedVit::*size,
                           const std::string& name_path) {
  if (vit == nullptr) return keys.Size({key});
  const Sourced<int64_t> given = keys.Size({key}, vit->*size, "");
  if (given.value != vit->*size && given.value != 0) {
    keys.findings().Problem(given.from, absl::StrCat(given.value),
                            absl::StrCat("is not that of ", name_path, ", which is ", vit->*size));
  }
  return {vit->*size, name_path};
}

// How many tokens stand before the patches: one for each teacher, and registers up to the next multiple. RADIO's code
// adds a whole multiple where there is nothing to fill.
Sourced<int64_t> RemoteClassTokens(ConfigKeys& args) {
  std::set<std::string> teachers;
  if (const Json* list = args.Find({"teachers"}); list != nullptr && list->is_array()) {
    for (const Json& teacher : *list) {
      if (teacher.is_object() && teacher.contains("name") && teacher["name"].is_string())
        teachers.insert(teacher["name"].get<std::string>());
    }
  }
  const Json* each = args.Find({"cls_token_per_teacher"});
  const bool for_each = each == nullptr || *each != Json(false);
  const auto tokens = static_cast<int64_t>(for_each && !teachers.empty() ? teachers.size() : 1);
  const std::string from = args.path() + ".teachers";
  const std::optional<Sourced<int64_t>> registers = args.Count({"cpe_num_registers"});
  const std::optional<Sourced<int64_t>> multiple = args.Count({"register_multiple"});
  if (registers && registers->value > 0) return {tokens + registers->value, from + " and cpe_num_registers"};
  if (!multiple || multiple->value == 0) return {tokens, from};
  return {tokens + multiple->value - tokens % multiple->value, from + " and register_multiple"};
}

void ReadArguments(ConfigKeys& args, EncoderSizes& sizes) {
  sizes.class_tokens = RemoteClassTokens(args);
  args.Nothing("model_norm", "RADIO's own norm of all tokens after the last block");
  args.Nothing("spectral_reparam", "weights that are stored as parts of a product");
  args.NotTaken({"min_num_patches", "max_num_patches"}, "the sizes of images are settled by data.*");
}

}  // namespace

bool IsRemoteEncoder(const Json& keys) {
  const auto args = keys.find("args");
  return (args != keys.end() && args->is_object()) || keys.contains("max_resolution");
}

void CheckPixelNorm(ConfigKeys& keys) {
  const auto check = [&](const char* key, const std::array<double, 3>& expected) {
    const Json* found = keys.Find({key});
    if (found != nullptr && !AreNumbers(*found, expected)) {
      keys.WrongValue(
          key, *found,
          absl::StrCat("cannot be expressed: images are normalized by that of CLIP, ", ValueText(Json(expected))));
    }
  };
  check("norm_mean", kPixelMean);
  check("norm_std", kPixelDeviation);
}

EncoderSizes ReadEncoder(ConfigKeys& keys, const Sourced<int64_t>& mtp_layers, const std::set<std::string>& ignored) {
  const std::string dialect = "radio";
  EncoderSizes sizes;
  KnowCommonKeys(keys);
  sizes.layers = keys.Size({"num_hidden_layers"});
  sizes.hidden = keys.Size({"hidden_size"});
  sizes.heads = keys.Size({"num_attention_heads"});
  sizes.patch = keys.Size({"patch_size"});
  sizes.max_image = keys.Size({"max_img_size"});
  const Sourced<double> ratio = keys.Number({"mlp_ratio"}, 4.0, dialect);
  sizes.ffn = {static_cast<int64_t>(static_cast<double>(sizes.hidden.value) * ratio.value),
               sizes.hidden.from + " x " + ratio.from};
  const Sourced<int64_t> tokens = keys.Size({"num_cls_tokens"}, 3, dialect);
  const auto registers = keys.Count({"num_registers"}).value_or(Sourced<int64_t>{7, "default of radio"});
  sizes.class_tokens = {tokens.value + registers.value, tokens.from + " + " + registers.from};
  sizes.init_std = keys.Number({"initializer_range"}, 0.02, dialect);
  sizes.norm_eps = keys.Number({"layer_norm_eps"}, 1e-6, dialect);
  const Sourced<std::string> act = keys.Word({"hidden_act"}).value_or(Sourced<std::string>{"gelu", "default of radio"});
  sizes.activation = {act.value == "gelu_pytorch_tanh" ? "gelu_tanh" : "gelu", act.from + " = " + act.value};
  if (act.value != "gelu" && act.value != "gelu_pytorch_tanh")
    keys.findings().Problem(act.from, ValueText(Json(act.value)),
                            "cannot be expressed, only gelu and gelu_pytorch_tanh");
  sizes.final_norm = FinalNorm(mtp_layers);
  keys.Nothing("use_swiglu_ffn", "the MLP of an encoder has no gate");
  keys.Only("qkv_bias", true, "q, k and v of an encoder have a bias");
  keys.Only("layerscale_value", 1.0, "what a block adds is not scaled");
  keys.Only("num_channels", 3, "images have three colours");
  for (const char* dropout : {"attention_probs_dropout_prob", "hidden_dropout_prob", "drop_path_rate"})
    keys.Nothing(dropout, "there is no dropout");
  keys.Nothing("quantization_config", "weights are not quantized");
  CheckPixelNorm(keys);
  keys.NotTaken({"video_temporal_patch_size"}, "videos are not trained; the tensor of their patches is passed through");
  keys.NotTaken({"min_num_patches", "max_num_patches"}, "the sizes of images are settled by data.*");
  keys.NotTaken({"summary_idxs"}, "there is no summary; the tensor is passed through");
  keys.Known({"image_size", "patch_dim", "video_patch_dim"});
  keys.Rest(ignored);
  return sizes;
}

EncoderSizes ReadRemoteEncoder(ConfigKeys& keys, const Sourced<int64_t>& mtp_layers,
                               const std::set<std::string>& ignored) {
  const std::string dialect = "RADIO's code";
  EncoderSizes sizes;
  KnowCommonKeys(keys);
  static const Json kNoArguments = Json::object();
  const Json* object = keys.Find({"args"});
  if (object != nullptr && !object->is_object()) keys.WrongValue("args", *object, "is no object");
  ConfigKeys args(object != nullptr && object->is_object() ? *object : kNoArguments, keys.PathOf("args"),
                  keys.findings());
  const NamedVit* vit = nullptr;
  const std::optional<Sourced<std::string>> name = args.Word({"model"});
  for (const NamedVit& each : kVits) {
    if (name && name->value == each.name) vit = &each;
  }
  if (name && vit == nullptr && !keys.Has({"hidden_size"}))
    keys.findings().Problem(name->from, ValueText(Json(name->value)),
                            "is no ViT that can be expressed: small, base, large or huge, of "
                            "patches of 16 and without a gate");
  const std::string from = name ? name->from : "";
  const bool unknown_vit = name && vit == nullptr && !keys.Has({"hidden_size"});
  if (!unknown_vit) {
    sizes.hidden = SizeOfVit(keys, "hidden_size", vit, &NamedVit::hidden, from);
    sizes.layers = SizeOfVit(keys, "num_hidden_layers", vit, &NamedVit::layers, from);
    sizes.heads = SizeOfVit(keys, "num_attention_heads", vit, &NamedVit::heads, from);
    sizes.ffn = SizeOfVit(keys, "intermediate_size", vit, &NamedVit::ffn, from);
  }
  sizes.patch = keys.Size({"patch_size"});
  const Sourced<int64_t> largest = args.Size({"cpe_max_size"}, 0, "");
  const Sourced<int64_t> resolution = keys.Size({"max_resolution"}, largest.value, largest.from);
  sizes.max_image = largest.value > 0 ? largest : resolution;
  if (sizes.max_image.value == 0) keys.findings().Problem(args.PathOf("cpe_max_size"), "", "is missing");
  ReadArguments(args, sizes);
  sizes.init_std = {0.02, "default of " + dialect};
  sizes.norm_eps = {1e-6, "default of " + dialect};
  sizes.activation = {"gelu", "default of " + dialect};
  sizes.final_norm = FinalNorm(mtp_layers);
  for (const char* key : {"vitdet_window_size", "feature_normalizer_config", "inter_feature_normalizer_config"})
    keys.Nothing(key, "features are those of the last block, of all patches");
  keys.Nothing("quantization_config", "weights are not quantized");
  CheckPixelNorm(keys);
  keys.NotTaken({"adaptor_names", "adaptor_configs"}, "heads for other models' features are not imported");
  keys.NotTaken({"preferred_resolution", "min_num_patches", "max_num_patches", "video_target_num_patches",
                 "video_maintain_aspect_ratio", "video_temporal_patch_size", "separate_video_embedder"},
                "the sizes of images are settled by data.*, and videos are not trained");
  keys.Known({"version", "max_resolution"});
  args.RestSaysNothing("as it is of RADIO's training");
  keys.Rest(ignored);
  return sizes;
}

}  // namespace planwright
