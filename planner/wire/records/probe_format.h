// The files that a rank writes for `--probe DIR`. Each rank writes the parts that it holds, and the launcher joins them
// to whole tensors under published names. So a probe sends nothing between ranks. A rank writes one safetensors file
// for each kind, DIR/parts/KIND.rankNNNN.safetensors, with these keys:
//
//   KIND = parameters                       before the first step, as the forward reads them
//   KIND = parameters_last                  after the last step: master weights, of which the parameters are roundings.
//                                           The joined file can be given to `initialize.from`.
//   KIND = gradients_first, gradients_last  of the first and the last step: reduced, divided by max(N, 1), not clipped
//     "MODULE/bucket/I"            Flat: the elements of bucket I that this rank owns, which is part ShardIndexOf of
//                                  Bucket::shards equal parts. SlicesOf and ClipRuns of shard_map.h say which elements
//                                  of which tensors these are. Ranks along tp repeat what tp does not cut.
//     "MODULE/buffer/FRAME/SLOT"   Not of gradients: a storage in no bucket (a frozen weight, an expert bias), whole as
//                                  the rank holds it (the same map, from offset 0).
//
//   KIND = values_first, values_last        of the first and the last step
//     "MODULE/MICROBATCH/NAME"     A value as this rank holds it. NAME is that of Block::probes, with the layer number.
//                                  The layout is that of the value in its block; the samples are those of this rank's
//                                  lane in the microbatch (SamplesOfLane). The file's "__metadata__" has "BLOCK/VALUE"
//                                  for each key, so that a reader finds the type.
//
//   KIND = values_evaluated                 of a run of no steps, which evaluates: nothing else is written then
//     "MODULE/ROUND/logits"        As above: the value that is probed as kLogitsProbe, and no other. The samples are
//                                  those of this rank's lane in a round, counted over all sets.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace planwright {

// The logits of a model that carries the loss are probed under this name (`probe logits logits` of its statement).
inline constexpr std::string_view kLogitsProbe = "logits";

inline std::string ProbePartPath(const std::string& directory, const std::string& kind, int rank) {
  char suffix[32];
  std::snprintf(suffix, sizeof suffix, ".rank%04d.safetensors", rank);
  return directory + "/parts/" + kind + suffix;
}

inline std::string ProbeBucketKey(const std::string& module, int bucket) {
  return module + "/bucket/" + std::to_string(bucket);
}

inline std::string ProbeBufferKey(const std::string& module, const std::string& frame, const std::string& slot) {
  return module + "/buffer/" + frame + "/" + slot;
}

inline std::string ProbeValueKey(const std::string& module, int64_t microbatch, const std::string& name) {
  return module + "/" + std::to_string(microbatch) + "/" + name;
}

}  // namespace planwright
