// The offsets of parameters in flat gradient buffers, which are reduced bucket by bucket, and how buckets are padded.
// Formulas: docs/training/step.md#gradient-buckets.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
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
// `dp`, so that it divides into shards, and of 128 (with `pad_high_busbw` of 65536), sizes at which collectives are
// fast. A bucket is closed as soon as it has `bucket_size` elements; without it there is one bucket. A parameter of
// `shared_embedding_indices` has a bucket of its own.
BucketLayout LayOutBuckets(const std::vector<int64_t>& numels, const std::set<int>& shared_embedding_indices,
                           std::optional<int64_t> bucket_size, int64_t dp, bool pad_high_busbw);

// The number of elements at which a bucket is closed; nothing means a single bucket. Without overlap of reduction and
// backward there is always a single bucket. Otherwise `num_buckets` decides, else `bucket_size`, else the default
// max(40e6, 1e6 * dp_cp).
std::optional<int64_t> BucketSize(int64_t num_parameters, std::optional<int64_t> num_buckets,
                                  std::optional<int64_t> bucket_size, int64_t dp_cp, bool overlap);

}  // namespace planwright
