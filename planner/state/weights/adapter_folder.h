// A folder of adapters as PEFT writes it: adapter_model.safetensors, and adapter_config.json
// (docs/training/adapters.md#in-and-out).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

inline constexpr char kAdapterModelFile[] = "adapter_model.safetensors";
inline constexpr char kAdapterConfigFile[] = "adapter_config.json";
// What names of PEFT begin with, in front of those of the model's modules.
inline constexpr char kPeftPrefix[] = "base_model.model.";

// What adapter_config.json says that a module with adapters of this rank and alpha cannot do, a line each: another rank
// or alpha, another kind of adapter, draws with which PEFT changes the weights beside them, or a key that is not known
// to change no number.
std::vector<std::string> AdapterConfigProblems(const std::string& text, int64_t rank, double alpha);

// What its target_modules names, and no tensor of `names` is of: PEFT draws adapters there, which add nothing.
std::vector<std::string> TargetsWithoutTensors(const std::string& text, const std::vector<std::string>& names);

// The name of a tensor of a layer from the number of the layer on, with what numbers it: "layers.3.mixer.in_proj" of
// any name that ends so. In front of it programs have other words. The name itself if it has no number.
std::string_view LayerTail(std::string_view name);

}  // namespace planwright
