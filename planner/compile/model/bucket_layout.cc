#include "planner/compile/model/bucket_layout.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "planner/base/text/bug.h"

namespace planwright {
namespace {

constexpr int64_t kStartAlignment = 64;  // elements

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

// Takes parameters one by one and closes buckets.
class BucketFiller {
 public:
  BucketFiller(size_t parameters, std::optional<int64_t> bucket_size, int64_t dp)
      : bucket_size_(bucket_size), dp_(dp), end_alignment_(std::lcm(dp, int64_t{128})) {
    layout_.parameters.resize(parameters);
  }

  void Add(int index, int64_t numel) {
    const int64_t start = RoundUp(position_, kStartAlignment);
    const int64_t end = start + numel;
    layout_.parameters[index] = {start, end, static_cast<int>(layout_.buckets.size())};
    open_ = true;
    position_ = end;
    if (bucket_size_ && end - bucket_start_ >= *bucket_size_) Close(end);
  }

  BucketLayout Finish() {
    if (open_) Close(position_);
    return std::move(layout_);
  }

 private:
  void Close(int64_t end) {
    const int64_t padded = RoundUp(end, end_alignment_);
    layout_.buckets.push_back({bucket_start_, padded, end - bucket_start_, (padded - bucket_start_) / dp_});
    bucket_start_ = position_ = padded;
    open_ = false;
  }

  std::optional<int64_t> bucket_size_;
  int64_t dp_, end_alignment_;
  int64_t bucket_start_ = 0, position_ = 0;
  bool open_ = false;  // the bucket in progress has a parameter
  BucketLayout layout_;
};

}  // namespace

BucketLayout LayOutBuckets(const std::vector<int64_t>& numels, std::optional<int64_t> bucket_size, int64_t dp) {
  Require(dp >= 1, "buckets need at least one shard");
  BucketFiller filler(numels.size(), bucket_size, dp);
  // from the last parameter to the first
  for (int i = static_cast<int>(numels.size()) - 1; i >= 0; --i) filler.Add(i, numels[i]);
  return filler.Finish();
}

}  // namespace planwright
