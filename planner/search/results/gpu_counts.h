// The numbers of GPUs that `plan tune --gpus` names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

struct GpuCounts {
  enum class Form { kOne, kList, kRange };
  Form form = Form::kOne;
  std::vector<int64_t> counts;  // a list as it was given; a range ascending
};

// "264", "264,256,128", or "64..512": 64, its doublings up to 512, and 512. InvalidArgument says what is wrong.
absl::StatusOr<GpuCounts> ReadGpuCounts(const std::string& text);

// InvalidArgument, all in one text: which of them are no whole nodes of `node` GPUs. Fewer than a node are a part of
// one.
absl::Status CheckWholeNodes(const std::vector<int64_t>& counts, int64_t node);

}  // namespace planwright
