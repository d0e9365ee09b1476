#include "tests/numerics/layouts.h"

namespace planwright::testing {

std::vector<Layout> ToyLayouts() {
  const auto toy = [](const char* name, const std::vector<std::string>& encoder,
                      const std::vector<std::string>& language) {
    return Layout{name, Join(encoder, language), {}, "recipes/nemotron_moe_vlm_20l_mock_8r_toy.yaml"};
  };
  const auto language = [](int first, int ranks, std::vector<AxisSize> axes) {
    return Join(LanguageOn(first, ranks, 1, 1), Parallel("language", axes));
  };
  const auto encoder = [](int ranks, std::vector<AxisSize> axes) {
    return Join(EncoderOn(ranks, 1), Parallel("radio_encoder", axes));
  };
  return {
      toy("tp2_tp2", EncoderOn(2, 2), LanguageOn(2, 2, 2, 1)),
      toy("eight_ranks", EncoderOn(4, 2), LanguageOn(4, 4, 2, 4)),
      toy("pp4", encoder(1, {}), language(1, 4, {{"pp", 4}})),
      toy("encoder_pp2_pp2_tp2_ep2", encoder(2, {{"pp", 2}}), language(2, 4, {{"pp", 2}, {"tp", 2}, {"ep", 2}})),
      toy("cp2", encoder(1, {}), language(1, 2, {{"cp", 2}})),
      toy("encoder_cp2_expert_tp2_ep2", encoder(2, {{"cp", 2}}), language(2, 4, {{"expert_tp", 2}, {"ep", 2}})),
      toy("pp2_cp2_dp2_ep4", encoder(1, {}), language(1, 8, {{"pp", 2}, {"cp", 2}, {"ep", 4}})),
      toy("colocated_on_4", EncoderOn(4, 2), LanguageOn(0, 4, 2, 4)),
  };
}

}  // namespace planwright::testing
