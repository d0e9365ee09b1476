// Numbered samples. What sample n holds depends on the data section and n alone: not on ranks, lanes or the order of
// asking (design, "Samples").
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::executor {

// Patches row by row; inside a patch channel, row, column (facts 3.9).
struct Image {
  int64_t rows = 0, cols = 0;   // of patches
  std::vector<double> patches;  // [rows * cols][3 * patch^2]
};

struct Sample {
  std::vector<int64_t> tokens, labels;  // [sequence_length]
  std::vector<double> loss_mask;        // 1 where the position counts in the loss
  std::vector<Image> images;            // in the order of their tokens
};

class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Sample `number` from 0, at any order. An error is the world's: a shard that cannot be read, a document too long.
  virtual absl::StatusOr<Sample> Get(int64_t number) = 0;
};

// The source that Plan::data names, its files opened. Errors name the file.
absl::StatusOr<std::unique_ptr<SampleSource>> OpenSampleSource(const Plan& plan);

// Tokens an image takes in the sequence: its patches after the pixel shuffle.
int64_t ImageTokens(const DataPlan& data, const Image& image);

// `path` as the recipe's file at `base` means it: absolute, or relative to that folder.
std::string ResolvePath(const std::string& base, const std::string& path);

// Labels are the next tokens, the last one `pad`; a position counts if its label is neither image nor pad and it is not
// the last.
void SetLabels(int64_t image_token, int64_t pad_token, Sample& sample);

}  // namespace planwright::executor
