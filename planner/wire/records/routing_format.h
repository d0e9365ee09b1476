// The files of expert choices that ranks write for `--record-routing DIR` and read for `--replay-routing DIR`
// (docs/model/mixture_of_experts.md#replay).
#pragma once

#include <cstdint>
#include <string>

namespace planwright {

using RoutingId = int16_t;  // of an expert; little-endian in the files

// The choices of one layer. frame: "language.layers.3", as LayerSummary::frame.
inline std::string RoutingPath(const std::string& folder, const std::string& frame) {
  return folder + "/" + frame + ".i16";
}

// What the choices belong to. The launcher writes it.
inline std::string RoutingSummaryPath(const std::string& folder) { return folder + "/routing.json"; }

}  // namespace planwright
