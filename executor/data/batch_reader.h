// The data instructions: samples as tensors. Every rank reads its own lane's samples; ranks of one lane read the same
// ones alike.
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>

#include "executor/data/sample_source.h"
#include "executor/ops/handler.h"

namespace planwright::executor {

// Not for use from several threads. Reading throws c10::Error with the source's message when a sample cannot be had.
class BatchReader {
 public:
  static absl::StatusOr<std::unique_ptr<BatchReader>> Open(const Plan& plan);

  // read_tokens: tokens i64[B,S], labels i64[B,S], loss_mask dtype[B,S], loss_tokens i64[1] on `device`; sample_rows
  // i64[B] on the host: rows of projected image tokens that each sample takes.
  Tensors ReadTokens(const CallContext& call, at::Device device, at::ScalarType dtype);

  // read_images: patches dtype[P, 3 patch^2] on `device`; image_grid i64[n,2], image_ids i64[n,2] (sample number, index
  // in sample), sample_rows i64[lane samples] on the host. Without images P and n are 0.
  Tensors ReadImages(const CallContext& call, at::Device device, at::ScalarType dtype);

 private:
  BatchReader(const Plan& plan, std::unique_ptr<SampleSource> source);

  const Sample& Get(int64_t number);
  at::Tensor SampleRows(const LaneSamples& lane);

  const DataPlan data_;
  const int64_t length_;
  std::unique_ptr<SampleSource> source_;
  std::map<int64_t, Sample> cache_;  // colocated modules and pipeline stages ask for a sample more than once
  size_t cache_samples_ = 0;
};

}  // namespace planwright::executor
