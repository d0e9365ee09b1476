// The values of the upstream implementation that tests compare with.
#pragma once

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "tests/support/folders.h"

namespace planwright {

inline const nlohmann::json& Golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(InSource("tests/golden/upstream_public.json")));
  return golden;
}

inline const nlohmann::json& GoldenCase(const std::string& section, const std::string& id) {
  for (const nlohmann::json& c : Golden().at(section)) {
    if (c.at("id") == id) return c;
  }
  throw std::out_of_range(section + " has no case " + id);
}

// Names of groups: ours -> upstream's. Upstream has six more kinds, over which it communicates where this project does
// not (docs/layouts/grids.md#groups): there is nothing of ours to compare with them.
inline const std::map<std::string, std::string>& UpstreamGroupNames() {
  static const std::map<std::string, std::string> names = {
      {"tp", "tp"},       {"cp", "cp"},         {"pp", "pp"},
      {"dp_cp", "dp_cp"}, {"tp_cp", "tp_cp"},   {"tp_dp_cp", "tp_dp_cp"},
      {"ep", "ep"},       {"ep_tp", "expt_tp"}, {"ep_dp", "expt_dp"}};
  return names;
}

}  // namespace planwright
