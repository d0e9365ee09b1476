// The values of the upstream implementation that tests compare with.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace planwright {

inline const nlohmann::json& Golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(PLANWRIGHT_SOURCE_DIR "/tests/golden/upstream_public.json"));
  return golden;
}

inline const nlohmann::json& GoldenCase(const std::string& section, const std::string& id) {
  for (const nlohmann::json& c : Golden().at(section)) {
    if (c.at("id") == id) return c;
  }
  throw std::out_of_range(section + " has no case " + id);
}

}  // namespace planwright
