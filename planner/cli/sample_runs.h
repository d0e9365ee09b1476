// A sample as stretches of tokens of one sort: text that is learnt, text that is not, an image, padding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/data/samples/sample_source.h"
#include "planner/plan/plan.h"

namespace planwright {

struct TokenRun {
  enum class Sort { kLearnt, kNotLearnt, kImage, kPadding } sort = Sort::kLearnt;
  int64_t first = 0, end = 0;  // positions in the sample
  int64_t document = -1;       // of the sample's origin, from 0; -1: unknown, or padding
  size_t encoder = 0;          // of an image: index in DataPlan::encoders, and number in the sample, from 0
  int64_t image = -1;
};

// A token is learnt if the position before it counts in the loss. Stretches end where documents do.
std::vector<TokenRun> RunsOfSample(const DataPlan& data, const Sample& sample, const SampleOrigin& origin);

// "learnt", "not learnt", "image", "padding".
const char* SortName(TokenRun::Sort sort);

}  // namespace planwright
