#include "planner/views/show/layer_parameters.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "planner/base/paper/table.h"

namespace planwright {
namespace {

// Of all experts; 0: it is no weight.
int64_t WeightElements(const Parameter& parameter) {
  if (parameter.buffer) return 0;
  int64_t elements = std::max<int64_t>(parameter.experts, 1);
  for (const int64_t size : parameter.shape) elements *= size;
  return elements;
}

}  // namespace

LayerParameters& LayerParameters::operator+=(const LayerParameters& other) {
  own += other.own, projector += other.projector;
  return *this;
}

std::string LayerParameters::Text() const {
  if (projector == 0) return WithCommas(own);
  return absl::StrCat(own > 0 ? WithCommas(own) + " and " : "", WithCommas(projector), " of the projector");
}

std::vector<LayerParameters> ParametersOfLayers(const Module& module) {
  std::map<std::string, int64_t> held;  // by frame
  for (const Storage& storage : module.storages) {
    for (const int parameter : storage.parameters)
      held[storage.frame] += WeightElements(module.parameters[static_cast<size_t>(parameter)]);
  }
  std::vector<LayerParameters> all;
  for (const LayerSummary& layer : module.layers) {
    const auto found = held.find(layer.frame);
    const int64_t projector = found == held.end() ? 0 : std::max<int64_t>(0, found->second - layer.parameters);
    all.push_back({layer.parameters, projector});
  }
  return all;
}

}  // namespace planwright
