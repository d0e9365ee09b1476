#include "planner/views/diff/part_pairs.h"

#include <map>
#include <string_view>
#include <utility>

namespace planwright {

std::vector<PartPair> PartsOfTensors(const Plan& from, const Plan& to) {
  if (from.optimizer.parts.empty() && to.optimizer.parts.empty()) return {};
  std::map<std::string_view, int> parts;
  for (const Module& module : from.modules) {
    for (const Parameter& parameter : module.parameters) {
      if (parameter.trained) parts[parameter.name] = parameter.part;
    }
  }
  std::map<std::pair<int, int>, PartPair> pairs;
  for (const Module& module : to.modules) {
    for (const Parameter& parameter : module.parameters) {
      const auto before = parts.find(parameter.name);
      if (!parameter.trained || before == parts.end() || (before->second < 0 && parameter.part < 0)) continue;
      const auto [pair, fresh] = pairs.try_emplace({before->second, parameter.part});
      if (fresh) pair->second = {before->second, parameter.part, parameter.file_name, 0};
      ++pair->second.tensors;
    }
  }
  std::vector<PartPair> result;
  for (auto& [key, pair] : pairs) result.push_back(std::move(pair));
  return result;
}

}  // namespace planwright
