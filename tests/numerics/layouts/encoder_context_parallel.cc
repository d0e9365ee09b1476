// The encoder's rows in bands over cp, and language models of other sizes behind it.
#include "tests/numerics/layouts.h"

namespace planwright::testing {
namespace {

std::vector<std::string> Encoder(int ranks, int tp, int cp) {
  return Join(EncoderOn(ranks, tp), Parallel("radio_encoder", {{"cp", cp}}));
}

}  // namespace

std::vector<Layout> EncoderContextParallelLayouts() {
  // A lane has no image, or one of one or two squares: most parts are empty.
  const std::vector<std::string> squares = {"data.image_grids=[[2, 2], [4, 2]]", "data.max_images=1"};
  const std::vector<std::string> two_samples = {"batch.micro_samples=2"};
  return {
      {"encoder_cp2", Join(Encoder(2, 1, 2), LanguageOn(2, 1, 1, 1))},
      {"encoder_cp4", Join(Encoder(4, 1, 4), LanguageOn(4, 1, 1, 1))},
      {"encoder_cp3", Join(Encoder(3, 1, 3), LanguageOn(3, 1, 1, 1))},
      {"encoder_cp2_tp2", Join(Encoder(4, 2, 2), LanguageOn(4, 2, 2, 2))},
      {"encoder_cp2_dp2", Join(Encoder(4, 1, 2), LanguageOn(4, 2, 1, 1))},
      {"encoder_cp2_fan_out", Join(Encoder(2, 1, 2), LanguageOn(2, 4, 1, 2))},
      {"encoder_cp2_fan_in", Join(Encoder(4, 1, 2), LanguageOn(4, 1, 1, 1)), two_samples},
      {"encoder_cp2_squares", Join(Encoder(2, 1, 2), LanguageOn(2, 1, 1, 1)), squares},
      {"encoder_cp4_squares", Join(Encoder(4, 1, 4), LanguageOn(4, 2, 2, 1)), squares},
  };
}

}  // namespace planwright::testing
