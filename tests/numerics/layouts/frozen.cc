#include "tests/numerics/layouts.h"

namespace planwright::testing {
namespace {

std::vector<std::string> Encoder(const char* backbone, const char* projection) {
  const std::string train = "modules.radio_encoder.train.";
  return {train + "backbone=" + backbone, train + "projection=" + projection};
}
const std::vector<std::string> kFrozenLanguage = {"modules.language.train.backbone=frozen"};
const std::vector<std::string> kBothOverlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true"};

}  // namespace

// stage1 and stage2 are those of docs/training/stages.md.
std::vector<Layout> FrozenLayouts() {
  const std::vector<std::string> stage1 = Join(Encoder("frozen", "trained"), kFrozenLanguage),
                                 stage2 = Encoder("frozen", "trained");
  return {
      {"stage1_tp2_ep2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 2)), stage1},
      {"stage1_ep4", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4)), stage1},
      {"stage1_colocated", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4)), stage1},
      {"stage2_uneven", Join(EncoderOn(3, 1), LanguageOn(3, 2, 1, 2)), stage2},
      {"stage2_colocated", Join(EncoderOn(4, 2), LanguageOn(0, 4, 2, 2), kBothOverlap), stage2},
      {"frozen_language", Join(EncoderOn(4, 2), LanguageOn(4, 4, 2, 4)), kFrozenLanguage},
      {"frozen_language_colocated", Join(EncoderOn(4, 2), LanguageOn(0, 4, 1, 4)), kFrozenLanguage},
      {"frozen_encoder", Join(EncoderOn(2, 1), LanguageOn(2, 4, 2, 4), kBothOverlap), Encoder("frozen", "frozen")},
      {"frozen_encoder_colocated", Join(EncoderOn(2, 2), LanguageOn(0, 2, 1, 2)), Encoder("frozen", "frozen")},
      {"frozen_projection", Join(EncoderOn(4, 2), LanguageOn(4, 2, 2, 1)), Encoder("trained", "frozen")},
      {"backbone_alone", Join(EncoderOn(2, 2), LanguageOn(2, 2, 1, 2)),
       Join(Encoder("trained", "frozen"), kFrozenLanguage)},
  };
}

}  // namespace planwright::testing
