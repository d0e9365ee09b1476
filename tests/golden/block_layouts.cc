#include "tests/golden/block_layouts.h"

#include <string>
#include <utility>

namespace planwright::testing {
namespace {

using Overrides = std::vector<std::string>;

// The tiny model with numbers that all of these layouts divide.
Overrides Base() {
  return {"models.hybrid_moe_tiny.mamba.groups=4", "batch.sequence_length=64", "cluster.gpus_per_node=16"};
}

Overrides FrozenLanguage(bool frozen) {
  return frozen ? Overrides{"modules.language.train.backbone=frozen"} : Overrides();
}

std::string NameOf(const std::string& what, const std::vector<AxisSize>& axes) {
  std::string name = what;
  for (const AxisSize& axis : axes) name += std::string("_") + axis.axis + std::to_string(axis.size);
  return name;
}

// Dense layers, embedding and head of the language model.
std::vector<Layout> Dense() {
  std::vector<Layout> layouts;
  for (const auto& [tp, cp] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}, {1, 4}}) {
    const std::vector<AxisSize> axes = {{"tp", tp}, {"cp", cp}};
    for (bool packed : {false, true}) {
      for (bool frozen : {false, true}) {
        Overrides overrides = Join(EncoderOn(1, 1), LanguageOn(1, tp * cp, 1, 1), Parallel("language", axes));
        if (packed) overrides.push_back("data.packed_documents=true");
        layouts.push_back({NameOf("dense", axes) + (packed ? "_packed" : "") + (frozen ? "_frozen" : ""),
                           Join(Base(), overrides, FrozenLanguage(frozen))});
      }
    }
  }
  return layouts;
}

std::vector<Layout> Encoder() {
  std::vector<Layout> layouts;
  for (const auto& [tp, cp] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 2}}) {
    const std::vector<AxisSize> axes = {{"tp", tp}, {"cp", cp}};
    const int ranks = tp * cp;
    const Overrides overrides =
        Join(Base(), Join(EncoderOn(ranks, 1), Parallel("radio_encoder", axes)), LanguageOn(ranks, 1, 1, 1));
    const std::string backbone = "modules.radio_encoder.train.backbone=frozen",
                      projection = "modules.radio_encoder.train.projection=frozen";
    const std::string name = NameOf("encoder", axes);
    layouts.push_back({name, overrides});
    layouts.push_back({name + "_frozen_backbone", Join(overrides, {backbone})});
    layouts.push_back({name + "_frozen", Join(overrides, {backbone, projection})});
  }
  return layouts;
}

// Dense MLP layers, and an encoder without a final norm and with the exact GELU.
std::vector<Layout> Published() {
  const Overrides model = {"models.radio_vit_tiny.final_norm=none", "models.radio_vit_tiny.activation=gelu",
                           "models.hybrid_moe_tiny.pattern='M-*E'", "models.hybrid_moe_tiny.mlp={ffn: 40}"};
  std::vector<Layout> layouts;
  for (const auto& [tp, cp] : {std::pair(1, 1), {2, 2}}) {
    const std::vector<AxisSize> axes = {{"tp", tp}, {"cp", cp}};
    const int ranks = tp * cp;
    const Overrides grids = Join(Join(EncoderOn(ranks, 1), LanguageOn(ranks, ranks, 1, 1)),
                                 Parallel("radio_encoder", axes), Parallel("language", axes)),
                    overrides = Join(Base(), grids, model);
    layouts.push_back({NameOf("published", axes), overrides});
    layouts.push_back({NameOf("published", axes) + "_frozen_backbone",
                       Join(overrides, {"modules.radio_encoder.train.backbone=frozen"})});
  }
  return layouts;
}

std::vector<Layout> Experts() {
  const std::vector<std::pair<int, std::vector<AxisSize>>> grids = {
      {2, {{"tp", 1}, {"cp", 1}, {"ep", 2}, {"expert_tp", 1}}},
      {4, {{"tp", 2}, {"cp", 1}, {"ep", 4}, {"expert_tp", 1}}},
      {2, {{"tp", 1}, {"cp", 1}, {"ep", 1}, {"expert_tp", 2}}},
      {4, {{"tp", 1}, {"cp", 1}, {"ep", 2}, {"expert_tp", 2}}},
      {8, {{"tp", 2}, {"cp", 2}, {"ep", 4}, {"expert_tp", 1}}},
      {8, {{"tp", 2}, {"cp", 1}, {"ep", 2}, {"expert_tp", 2}}},
      {8, {{"tp", 2}, {"cp", 2}, {"ep", 4}, {"expert_tp", 2}}},
  };
  std::vector<Layout> layouts;
  for (const auto& [ranks, axes] : grids) {
    const Overrides grid = Join(EncoderOn(1, 1), LanguageOn(1, ranks, 1, 1), Parallel("language", axes));
    for (const std::string dispatch : {"all_to_all", "all_gather"}) {
      if (dispatch == "all_gather" && axes[2].size == 1) continue;  // all experts are at home
      for (bool overlap : {false, true}) {
        for (bool frozen : {false, true}) {
          const Overrides ways = {
              "modules.language.parallel.dispatch=" + dispatch,
              std::string("modules.language.parallel.overlap_dispatch=") + (overlap ? "true" : "false")};
          layouts.push_back(
              {NameOf("experts", axes) + "_" + dispatch + (overlap ? "_overlap" : "") + (frozen ? "_frozen" : ""),
               Join(Base(), Join(grid, ways), FrozenLanguage(frozen))});
        }
      }
    }
  }
  return layouts;
}

}  // namespace

std::vector<Layout> BlockLayouts() {
  std::vector<Layout> layouts;
  for (auto* of : {Dense, Encoder, Experts, Published}) {
    for (Layout& layout : of()) layouts.push_back(std::move(layout));
  }
  return layouts;
}

}  // namespace planwright::testing
