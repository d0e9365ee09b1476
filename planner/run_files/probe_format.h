// What a rank leaves for `--probe DIR`: parts, which the launcher joins to whole tensors by published names. One
// safetensors file per rank and kind, DIR/parts/KIND.rankNNNN.safetensors, written when the rank has them:
//
//   KIND = parameters                       before the first step
//   KIND = gradients_first, gradients_last  of the first and the last step: reduced, divided by max(N, 1), not clipped
//     "MODULE/bucket/I"            flat: the elements of bucket I that this rank owns (ShardIndexOf of Bucket::shards
//                                  equal parts). Which element is which is SlicesOf + ClipRuns in shard_map.h. Ranks
//                                  along tp repeat what is not cut.
//     "MODULE/buffer/FRAME/SLOT"   parameters only: a storage outside buckets, whole as the rank holds it (same map,
//                                  storage offset 0)
//
//   KIND = values_first, values_last        of the first and the last step
//     "MODULE/MICROBATCH/NAME"     the value as this rank holds it, NAME from Block::probes with its layer filled in.
//                                  Its layout is that of the block's value: samples are those of this rank's lane in
//                                  that microbatch (SamplesOfLane), and "__metadata__" of the file has for each key
//                                  "BLOCK/VALUE", so that the type is found.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace planwright {

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
