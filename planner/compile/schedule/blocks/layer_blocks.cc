#include "planner/compile/schedule/blocks/layer_blocks.h"

namespace planwright {

std::vector<const LayerBlocks*> BlocksOfLayers(const Module& module, const ModuleBlocks& blocks) {
  std::vector<const LayerBlocks*> of_layers;
  size_t taps = 0;
  for (const LayerSummary& layer : module.layers) {
    const auto known = blocks.layers.find(layer.kind);
    of_layers.push_back(known == blocks.layers.end() ? &blocks.taps.at(taps++) : &known->second);
  }
  return of_layers;
}

}  // namespace planwright
