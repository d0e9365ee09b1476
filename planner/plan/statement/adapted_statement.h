// The statement of a module with low-rank adapters: the statement of its kind, where each product of a layer that is a
// target,
//
//   y = linear x [w]
//
// has a second way of two thin products beside the one with its frozen weight:
//
//   w_low = linear x [w_lora_A]
//   y_base = linear x [w]
//   y = add_linear y_base w_low [w_lora_B] width (rows of w) scale (adapter.alpha / adapter.rank)
//
// Of a storage in which several weights are joined (q | k | v) each target adds to its own features, one after the
// other. The new weights are cut as `w` is: lora_A along its inputs, lora_B along its outputs. All that follows from
// statements follows from the rewritten one as from any other (docs/decisions/0046-adapters.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

// The constants that the statement of a module with adapters has beside those of its kind.
inline constexpr char kAdapterRank[] = "adapter.rank", kAdapterAlpha[] = "adapter.alpha";

// A product that an adapter can stand on.
struct AdapterProduct {
  char layer = 0;      // the letter of its layers
  std::string name;    // as published, without the layer and without ".weight": "mixer.q_proj"
  std::string prefix;  // of the layer's names: "backbone.layers.{layer}."
  bool operator==(const AdapterProduct&) const = default;
};

// Whether a target names what is published so: as a whole, or as its last words, "q_proj" or "mixer.q_proj". As PEFT
// has it.
bool IsTarget(std::string_view target, std::string_view name);

// The products of layers of these letters, in the order of the statement, each once.
std::vector<AdapterProduct> AdapterProducts(const ModelStatement& statement, std::string_view letters);

// The names of the products that the targets name, in that order, each once: the same however targets are spelled and
// ordered. As targets they name these products again.
std::vector<std::string> AdaptedNames(const ModelStatement& statement, std::string_view letters,
                                      const std::vector<std::string>& targets);

// Why no adapter can stand on what the target names in a model with layers of these letters; "" if one can. It names at
// least one product of a layer, and nothing else.
std::string AdapterTargetProblem(const ModelStatement& statement, std::string_view letters, std::string_view target);

// Whether a parameter is one of the adapters of its module, and how many elements these have.
bool IsOfAdapter(const Module& module, const Parameter& parameter);
int64_t AdapterElements(const Module& module);

// The parts that a module's parameters are of, which are trained, loaded and rated apart.
enum class ModulePart { kBackbone, kProjection, kAdapter };
ModulePart PartOf(const Module& module, const Parameter& parameter);

// As recipes name a part: "language.adapter", "tower.projection"; "language" of a module that has a backbone alone.
std::string NameOfPart(const Module& module, ModulePart part);

// The rewritten statement. Targets that name no product change nothing.
ModelStatement AdaptedStatement(const ModelStatement& statement, const std::vector<std::string>& targets);

}  // namespace planwright
