// Layouts of the tiny recipe, as overrides.
#pragma once

#include <string>
#include <vector>

namespace planwright::testing {

struct Layout {
  const char* name;
  std::vector<std::string> overrides;
};

inline std::vector<std::string> EncoderOn(int ranks, int tp) {
  return {"modules.radio_encoder.placement.ranks=" + std::to_string(ranks),
          "modules.radio_encoder.parallel.tp=" + std::to_string(tp)};
}

inline std::vector<std::string> LanguageOn(int first_rank, int ranks, int tp, int ep) {
  const std::string module = "modules.language.";
  return {module + "placement.first_rank=" + std::to_string(first_rank),
          module + "placement.ranks=" + std::to_string(ranks), module + "parallel.tp=" + std::to_string(tp),
          module + "parallel.ep=" + std::to_string(ep)};
}

inline std::vector<std::string> Join(std::vector<std::string> a, const std::vector<std::string>& b,
                                     const std::vector<std::string>& c = {}) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

// Every layout on which the tiny model is tested; one rank is the reference.
inline std::vector<Layout> TinyLayouts() {
  return {
      {"one_and_one", Join(EncoderOn(1, 1), LanguageOn(1, 1, 1, 1))},
      {"tp2_tp2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1))},
      {"dp2_dp2", Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))},
      {"ep2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2))},
      {"ep4", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4))},
      {"fan_in", Join(EncoderOn(4, 1), LanguageOn(4, 2, 1, 2), {"batch.micro_samples=2"})},
      {"fan_out", Join(EncoderOn(1, 1), LanguageOn(1, 4, 1, 2))},
      {"uneven", Join(EncoderOn(3, 1), LanguageOn(3, 2, 1, 1))},
      {"colocated_4", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4))},
  };
}

}  // namespace planwright::testing
