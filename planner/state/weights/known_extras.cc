#include "planner/state/weights/known_extras.h"

namespace planwright {
namespace {

constexpr KnownExtra kExtras[] = {
    {"sound_encoder.*", "audio encoder", "the Omni model, for sound"},
    {"sound_projection.*", "projection of the audio encoder", "the Omni model, for sound"},
    {"mtp.*", "multi-token prediction layers", "servers that draft several tokens"},
    {"radio_model.model.patch_generator.video_embedder.weight", "embedder of video patches",
     "the Omni model, for video; transformers draws it if it is missing"},
    {"radio_model.summary_idxs", "indices of summary tokens", "users of RADIO's summary"},
    {"radio_model.input_conditioner.norm_mean", "mean that is subtracted from pixels", "a stand-alone RADIO",
     KnownExtra::Numbers::kPixelMean},
    {"radio_model.input_conditioner.norm_std", "deviation that pixels are divided by", "a stand-alone RADIO",
     KnownExtra::Numbers::kPixelDeviation},
    {"radio_model.model.blocks.*.layer_scale1.lambda1", "scale of the attention's output", "transformers' RADIO",
     KnownExtra::Numbers::kOnes},
    {"radio_model.model.blocks.*.layer_scale2.lambda1", "scale of the MLP's output", "transformers' RADIO",
     KnownExtra::Numbers::kOnes},
};

constexpr OtherName kOtherNames[] = {
    {"vision_model.final_norm.", "vision_final_layernorm."},
};

// Whether `text` is `pattern`, in which * stands for any text.
bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  const std::string_view begin = pattern.substr(0, star), rest = pattern.substr(star + 1);
  if (!text.starts_with(begin)) return false;
  if (rest.empty()) return text.size() > begin.size();
  for (size_t at = begin.size() + 1; at < text.size(); ++at) {
    if (Matches(rest, text.substr(at))) return true;
  }
  return false;
}

}  // namespace

std::span<const KnownExtra> KnownExtras() { return kExtras; }
std::span<const OtherName> OtherNames() { return kOtherNames; }

const KnownExtra* FindKnownExtra(std::string_view name) {
  // RADIO's tensors lie at any depth; the others at the top alone.
  const size_t radio = name.find("radio_model.");
  const std::string_view inner = radio == std::string_view::npos ? name : name.substr(radio);
  for (const KnownExtra& extra : kExtras) {
    if (Matches(extra.pattern, inner)) return &extra;
  }
  return nullptr;
}

}  // namespace planwright
