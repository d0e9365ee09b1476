// Layouts of the tiny recipe, as overrides. layouts_test.cc compares each with one rank.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace planwright::testing {

inline constexpr char kTinyRecipe[] = "recipes/nemotron_moe_vlm_tiny.yaml";
// The same language model without an encoder.
inline constexpr char kTextRecipe[] = "recipes/nemotron_moe_lm_tiny.yaml";

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

// More of a module's grid: Parallel("language", {{"pp", 2}, {"cp", 2}}).
struct AxisSize {
  const char* axis;
  int size;
};
inline std::vector<std::string> Parallel(const std::string& module, const std::vector<AxisSize>& axes) {
  std::vector<std::string> overrides;
  for (const AxisSize& axis : axes)
    overrides.push_back("modules." + module + ".parallel." + axis.axis + "=" + std::to_string(axis.size));
  return overrides;
}

inline std::vector<std::string> Join(std::vector<std::string> a, const std::vector<std::string>& b,
                                     const std::vector<std::string>& c = {}) {
  a.insert(a.end(), b.begin(), b.end());
  a.insert(a.end(), c.begin(), c.end());
  return a;
}

inline std::vector<std::string> OneRankOnly() { return Join(EncoderOn(1, 1), LanguageOn(0, 1, 1, 1)); }

// A layout, and what is trained on it. `training` changes the model or the batch: the one rank that the layout is
// compared with has these overrides too. `one_rank`: the overrides that put the recipe's modules on rank 0.
struct Layout {
  std::string name;
  std::vector<std::string> overrides;
  std::vector<std::string> training = {};
  std::string recipe = kTinyRecipe;
  std::vector<std::string> one_rank = OneRankOnly();
  friend void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }
};

// The layouts of tp, dp, ep and bridges.
inline std::vector<Layout> TinyLayouts() {
  return {
      {"one_and_one", Join(EncoderOn(1, 1), LanguageOn(1, 1, 1, 1))},
      {"tp2_tp2", Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1))},
      {"dp2_dp2", Join(EncoderOn(2, 1), LanguageOn(2, 2, 1, 1))},
      {"ep2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 2))},
      {"ep4", Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 4))},
      {"fan_in", Join(EncoderOn(4, 1), LanguageOn(4, 2, 1, 2)), {"batch.micro_samples=2"}},
      {"fan_out", Join(EncoderOn(1, 1), LanguageOn(1, 4, 1, 2))},
      {"uneven", Join(EncoderOn(3, 1), LanguageOn(3, 2, 1, 1))},
      {"colocated_4", Join(EncoderOn(4, 1), LanguageOn(0, 4, 2, 4))},
  };
}

// The layouts of one feature each (layouts/FEATURE.cc).
std::vector<Layout> PipelineLayouts();
std::vector<Layout> ContextParallelLayouts();
std::vector<Layout> EncoderContextParallelLayouts();
std::vector<Layout> ExpertTpLayouts();
std::vector<Layout> DispatchLayouts();
std::vector<Layout> FrozenLayouts();
std::vector<Layout> RecomputeLayouts();
std::vector<Layout> PackedDocumentLayouts();
std::vector<Layout> EncodersLayouts();
std::vector<Layout> EdgeLayouts();
std::vector<Layout> PublishedModelLayouts();
std::vector<Layout> FourGpuLayouts();
std::vector<Layout> UndividedLayouts();
std::vector<Layout> ExpertWeightLayouts();

// All of the above.
std::vector<Layout> AllLayouts();

// Layouts that save and load each other's checkpoints, of the tiny recipe with this training.
std::vector<Layout> ReshardLayouts();
std::vector<std::string> ReshardTraining();

// Layouts of the 20-layer toy.
std::vector<Layout> ToyLayouts();

// Layouts of models with low-rank adapters.
std::vector<Layout> AdapterLayouts();

// Layouts of the tiny models of kind decoder: Llama, Qwen3, Qwen3-MoE, and Qwen3 behind an encoder.
std::vector<Layout> DecoderLayouts();

}  // namespace planwright::testing
