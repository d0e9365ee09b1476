#include "planner/exchange/read_model.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/exchange/config_keys.h"
#include "planner/exchange/read_encoder.h"
#include "planner/exchange/read_language.h"

namespace planwright {
namespace {

using Json = ConfigKeys::Json;

std::string TypeOf(const Json& config) {
  const auto type = config.find("model_type");
  return type != config.end() && type->is_string() ? type->get<std::string>() : "";
}

// A model_type that is no text would count as none.
void CheckTypeIsText(const Json& config, const std::string& path, Findings& findings) {
  const auto type = config.find("model_type");
  if (type != config.end() && !type->is_string() && !type->is_null())
    findings.Problem(path + "model_type", ValueText(*type), "is no text");
}

// The object under these names of one key. Two that differ are a problem, and so is another value; null: none.
const Json* ObjectUnder(ConfigKeys& keys, ConfigKeys::Names names, std::string* path) {
  const Json* found = keys.Find(names, path);
  if (found == nullptr) {
    keys.findings().Problem(*names.begin(), "", "is missing");
  } else if (!found->is_object()) {
    keys.findings().Problem(*path, ValueText(*found), "is no object");
  } else {
    CheckTypeIsText(*found, *path + ".", keys.findings());
    return found;
  }
  return nullptr;
}

EncoderSizes ReadEitherEncoder(const Json& config, const std::string& path, const Sourced<int64_t>& mtp_layers,
                               const std::set<std::string>& ignored, Findings& findings) {
  ConfigKeys keys(config, path, findings);
  return IsRemoteEncoder(config) ? ReadRemoteEncoder(keys, mtp_layers, ignored)
                                 : ReadEncoder(keys, mtp_layers, ignored);
}

// downsample_ratio 0.5 joins squares of 2 x 2 patches.
Sourced<int64_t> ReadPixelShuffle(ConfigKeys& keys) {
  const Sourced<double> ratio = keys.Number({"downsample_ratio"}, 0.5, "nemotron_h_omni");
  const double side = ratio.value > 0 ? 1 / ratio.value : 0;
  if (ratio.value > 0 && (std::floor(side) != side || side > 64)) {
    keys.findings().Problem(ratio.from, ShortestText(ratio.value),
                            "cannot be expressed, only 1 / n with a whole n up to 64");
    return {0, ratio.from};
  }
  return {static_cast<int64_t>(side), ratio.from + " = " + ShortestText(ratio.value)};
}

ProjectorSizes ReadProjector(ConfigKeys& keys, const EncoderSizes& encoder) {
  ProjectorSizes sizes;
  sizes.hidden = keys.Size({"projector_hidden_size"});
  sizes.pixel_shuffle = ReadPixelShuffle(keys);
  sizes.norm_eps = {1e-5, "default of nemotron_h_omni"};
  const Sourced<int64_t> width =
      keys.Size({"vision_hidden_size", "vit_hidden_size"}, encoder.hidden.value, encoder.hidden.from);
  if (width.value != encoder.hidden.value && width.value != 0 && encoder.hidden.value != 0) {
    keys.findings().Problem(width.from, absl::StrCat(width.value),
                            absl::StrCat("is not ", encoder.hidden.from, ", which is ", encoder.hidden.value));
  }
  keys.Only("ps_version", "v2", "the order in which pixel shuffle joins patches");
  return sizes;
}

ModelSizes ReadVisionLanguage(const Json& config, const std::set<std::string>& ignored, Findings& findings) {
  ModelSizes sizes;
  ConfigKeys keys(config, "", findings);
  KnowCommonKeys(keys);
  std::string path;
  const Json* text = ObjectUnder(keys, {"text_config", "llm_config"}, &path);
  if (text == nullptr) {
    // It is reported.
  } else if (const std::string type = TypeOf(*text); type != "nemotron_h" && !type.empty()) {
    findings.Problem(path + ".model_type", ValueText(Json(type)), "cannot be expressed, only nemotron_h");
  } else {
    ConfigKeys language(*text, path, findings);
    sizes.language = ReadLanguage(language, ignored);
  }
  const Sourced<int64_t> mtp_layers = sizes.language ? sizes.language->mtp_layers : Sourced<int64_t>{};
  const Json* vision = ObjectUnder(keys, {"vision_config"}, &path);
  if (vision == nullptr) {
    // It is reported.
  } else if (const std::string type = TypeOf(*vision); type != "radio" && !type.empty() && !IsRemoteEncoder(*vision)) {
    findings.Problem("vision_config.model_type", ValueText(Json(type)), "cannot be expressed, only radio");
  } else {
    sizes.encoder = ReadEitherEncoder(*vision, "vision_config", mtp_layers, ignored, findings);
    sizes.projector = ReadProjector(keys, *sizes.encoder);
  }
  sizes.image_token = keys.Count({"image_token_id", "img_context_token_id", "image_token_index"});
  keys.Nothing("tie_word_embeddings", "embedding and output head are two tensors");
  keys.Nothing("quantization_config", "weights are not quantized");
  CheckPixelNorm(keys);
  keys.Find({"audio_config", "sound_config"});
  keys.NotTaken({"audio_config", "sound_config", "audio_token_id", "sound_context_token_id", "sound_context_token"},
                "sound is not trained; its tensors are passed through");
  keys.NotTaken({"video_token_id", "video_context_token_id", "video_context_token", "video_pruning_rate",
                 "video_temporal_patch_size"},
                "videos are not trained; their tensors are passed through");
  keys.NotTaken({"min_num_patches", "max_num_patches", "force_image_size", "use_thumbnail", "patch_size", "image_size",
                 "dynamic_image_size", "max_dynamic_patch", "min_dynamic_patch"},
                "the sizes of images are settled by data.*");
  keys.NotTaken({"template", "image_tag_type", "img_context_token", "img_start_token", "img_end_token",
                 "system_message", "max_sequence_length"},
                "it is of texts, which the data brings");
  keys.Rest(ignored);
  return sizes;
}

}  // namespace

ConfigKind KindOfConfig(const Json& config) {
  const std::string type = TypeOf(config);
  if (type == "nemotron_h") return ConfigKind::kLanguage;
  if (type == "nemotron_h_omni" || type.starts_with("NemotronH_")) return ConfigKind::kVisionLanguage;
  if (type == "radio" || (type.empty() && IsRemoteEncoder(config))) return ConfigKind::kEncoder;
  return ConfigKind::kUnknown;
}

ModelSizes ReadModel(const Json& config, const std::set<std::string>& ignored, Findings& findings) {
  ModelSizes sizes;
  CheckTypeIsText(config, "", findings);
  switch (KindOfConfig(config)) {
    case ConfigKind::kLanguage: {
      ConfigKeys keys(config, "", findings);
      sizes.language = ReadLanguage(keys, ignored);
      break;
    }
    case ConfigKind::kEncoder: {
      const Sourced<int64_t> no_language;
      sizes.encoder = ReadEitherEncoder(config, "", no_language, ignored, findings);
      break;
    }
    case ConfigKind::kVisionLanguage: return ReadVisionLanguage(config, ignored, findings);
    case ConfigKind::kUnknown:
      findings.Problem("model_type", ValueText(Json(TypeOf(config))),
                       "cannot be expressed, only nemotron_h, nemotron_h_omni, radio, and RADIO's own config.json");
  }
  return sizes;
}

}  // namespace planwright
