// The layouts that are measured on four GPUs (tests/gpu/four_gpus.py), with both kinds of dispatch.
#include "tests/numerics/layouts.h"

namespace planwright::testing {

std::vector<Layout> FourGpuLayouts() {
  const std::vector<std::string> dp4_ep4 = Join(EncoderOn(4, 1), LanguageOn(0, 4, 1, 4)),
                                 tp2_ep4 = Join(EncoderOn(4, 2), LanguageOn(0, 4, 2, 4)),
                                 apart = Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 2)),
                                 dp4_ep2 = LanguageOn(0, 4, 1, 2),
                                 gathered = {"modules.language.parallel.dispatch=all_gather"},
                                 sent = {"modules.language.parallel.dispatch=all_to_all"},
                                 overlap = {"gradients.overlap_reduce=true", "gradients.overlap_gather=true",
                                            "gradients.buckets=8"};
  return {
      {"four_dp4_ep4", Join(dp4_ep4, sent)},
      {"four_dp4_ep4_gathered", Join(dp4_ep4, gathered)},
      {"four_tp2_ep4", Join(tp2_ep4, sent)},
      {"four_tp2_ep4_gathered", Join(tp2_ep4, gathered)},
      {"four_apart_ep2", Join(apart, sent)},
      {"four_apart_ep2_gathered", Join(apart, gathered)},
      {"four_text_dp4_ep2_overlap", Join(dp4_ep2, overlap), {}, kTextRecipe, {}},
  };
}

}  // namespace planwright::testing
