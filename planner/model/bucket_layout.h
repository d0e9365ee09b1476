// Where parameters lie in the flat gradient buffers that are reduced bucket by bucket. Formulas: facts 5.3.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace planwright {

struct BucketLayout {
  struct Parameter {
    int64_t start = 0, end = 0;  // elements of the buffer, half-open
    int bucket = 0;
  };
  struct Bucket {
    int64_t start = 0, end = 0;  // padded, half-open
    int64_t unpadded = 0;        // elements before the padding at the end
    int64_t shard = 0;           // elements that each of dp ranks owns
  };
  std::vector<Parameter> parameters;  // in the order of the sizes given
  std::vector<Bucket> buckets;
};

// Lays parameters out in reverse order of `numels`, each start aligned to 64 elements, bucket ends padded so that `dp`
// shards and the field's fast paths divide them. A bucket closes once it holds `bucket_size` elements (none: one
// bucket). Parameters of `shared_embedding_indices` are alone in their buckets.
BucketLayout LayOutBuckets(const std::vector<int64_t>& numels, const std::set<int>& shared_embedding_indices,
                           std::optional<int64_t> bucket_size, int64_t dp, bool pad_high_busbw);

// Elements after which a bucket closes; nothing: a single bucket, as always when the reduction does not overlap the
// backward. `num_buckets` wins over `bucket_size`; with neither, max(40e6, 1e6 * dp_cp).
std::optional<int64_t> BucketSize(int64_t num_parameters, std::optional<int64_t> num_buckets,
                                  std::optional<int64_t> bucket_size, int64_t dp_cp, bool overlap);

}  // namespace planwright
