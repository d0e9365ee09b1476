// The offsets of parameters in flat gradient buffers, which are reduced bucket by bucket, and how buckets are padded.
// Formulas: docs/training/step.md#gradient-buckets.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace planwright {

struct BucketLayout {
  struct Parameter {
    int64_t start = 0, end = 0;  // elements [start, end) of the buffer
    int bucket = 0;
  };
  struct Bucket {
    int64_t start = 0, end = 0;  // elements [start, end) of the buffer, with padding
    int64_t unpadded = 0;        // elements without the padding at the end
    int64_t shard = 0;           // elements of each of the `dp` shards
  };
  std::vector<Parameter> parameters;  // in the order of `numels`
  std::vector<Bucket> buckets;
};

// Places parameters of `numels` elements one after the other, from the last to the first: the backward finishes their
// gradients in about this order. Each parameter starts at a multiple of 64 elements. Each bucket ends at a multiple of
// `dp`, so that it divides into shards, and of 128, a size at which collectives are fast. A bucket is closed as soon as
// it has `bucket_size` elements; without it there is one bucket.
BucketLayout LayOutBuckets(const std::vector<int64_t>& numels, std::optional<int64_t> bucket_size, int64_t dp);

}  // namespace planwright
