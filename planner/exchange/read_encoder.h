// The config of a RADIO encoder as sizes (docs/hugging_face.md#what-goes-in), in the two dialects that exist.
#pragma once

#include <set>
#include <string>

#include "planner/exchange/config_keys.h"
#include "planner/exchange/model_sizes.h"

namespace planwright {

// Whether this is the object of RADIO's remote code, with the arguments of its training under `args`, and not one of
// transformers' `radio`.
bool IsRemoteEncoder(const nlohmann::ordered_json& keys);

// Reads every key of the object. What a recipe cannot express, and keys that are not known, are problems of `keys`.
// `mtp_layers`: of the language model that the encoder feeds, on which its final norm depends.
EncoderSizes ReadEncoder(ConfigKeys& keys, const Sourced<int64_t>& mtp_layers, const std::set<std::string>& ignored);
EncoderSizes ReadRemoteEncoder(ConfigKeys& keys, const Sourced<int64_t>& mtp_layers,
                               const std::set<std::string>& ignored);

// A problem for each of norm_mean and norm_std that is not what images of a run are normalized by.
void CheckPixelNorm(ConfigKeys& keys);

}  // namespace planwright
