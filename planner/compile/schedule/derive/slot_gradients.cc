#include "planner/compile/schedule/derive/slot_gradients.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/base/text/bug.h"

namespace planwright {

std::vector<TpGradient> GradientsOverTp(const Module& module, const ModuleBlocks& blocks) {
  const std::string embed = module.name + ".embed", head = module.name + ".head";
  std::map<std::string_view, const LayerBlocks*> pieces = {{embed, &blocks.embedding}, {head, &blocks.head}};
  const std::vector<const LayerBlocks*> layers = BlocksOfLayers(module, blocks);
  for (size_t i = 0; i < layers.size(); ++i) pieces.emplace(module.layers[i].frame, layers[i]);
  std::vector<TpGradient> gradients;
  for (const Storage& storage : module.storages) {
    TpGradient& gradient = gradients.emplace_back(TpGradient::kSharded);
    const Parameter& parameter = module.parameters[static_cast<size_t>(storage.parameters.front())];
    if (!parameter.trained || parameter.experts > 0) continue;
    const SlotGradients& of_piece = pieces.at(storage.frame)->gradients;
    const auto found = of_piece.find(storage.slot);
    Require(found != of_piece.end(), "nothing adds to the gradient of " + storage.frame + "." + storage.slot);
    gradient = found->second;
    for (const SharedSlot& shared : storage.shared)
      Require(pieces.at(shared.frame)->gradients.at(shared.slot) == gradient,
              "two pieces give one weight gradients of two kinds: " + shared.frame + "." + shared.slot);
  }
  return gradients;
}

}  // namespace planwright
