// Where each token of a sample stands, for rotary embeddings of three axes (docs/model/decoder.md#three-axes).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/data/samples/sample_source.h"
#include "planner/plan/plan.h"

namespace planwright {

// Of each token its place in the text, its row and its column. For a text token all three are the same number, which
// counts from 0, and with packed documents from 0 again in each of them. An image begins at the next number n: its
// tokens have the place n, and n plus their row and their column in the image, in image tokens. Behind it n is larger
// by the larger side of the image.
std::vector<std::array<int64_t, 3>> TokenPositions(const DataPlan& data, const Sample& sample);

}  // namespace planwright
