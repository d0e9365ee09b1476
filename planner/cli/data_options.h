// The options of `plan data`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "planner/cli/option.h"
#include "planner/data/samples/index_files.h"

namespace planwright {

struct DataOptions : CommandOptions {
  IndexOptions index;
  int64_t samples = 1000;  // whose texts are read for figures
  // Which samples are traced: one, or those of a step on one lane.
  std::optional<int64_t> sample, step, lane;
  std::string images;  // a folder to write images to; empty: none
};

}  // namespace planwright
