// The data instructions: samples as tensors. Every rank reads the samples of its own lane; ranks of one lane read the
// same samples and get the same tensors (docs/training/data.md#lanes).
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>

#include "executor/ops/handler.h"
#include "planner/samples/sample_source.h"

namespace planwright::executor {

// For one thread at a time. Reading throws FileError with the source's message if a sample cannot be read.
class BatchReader {
 public:
  static absl::StatusOr<std::unique_ptr<BatchReader>> Open(const Plan& plan);

  // What a data instruction reads, in host memory.
  Tensors Read(const Instruction& instruction, const CallContext& call, at::ScalarType dtype);

  // read_tokens, for the B samples of the lane. For the device: tokens i64 [B,S], labels i64 [B,S], loss_mask `dtype`
  // [B,S], and loss_tokens i64 [1], the number of positions that count. For the host: sample_rows i64 [B] for each
  // encoder, the tokens that each sample has for it (without an encoder once, zeros); with packed documents also
  // document_ends i64 [D] of the lane's one sample.
  Tensors ReadTokens(const CallContext& call, at::ScalarType dtype);

  // read_images of the call's module, for the n images of the lane. For the device: patches `dtype` [P, 3 patch^2]. For
  // the host: image_grid i64 [n,2] (rows and columns of patches), image_ids i64 [n,2] (sample number, index in the
  // sample), sample_rows i64 [samples of the lane]. Without images P and n are 0. With cp the patches are those of this
  // rank's part (planner/plan/image_bands.h); the rest is of the whole lane.
  Tensors ReadImages(const CallContext& call, at::ScalarType dtype);

  // read_image_sizes of the call's module: image_grid and sample_rows, as read_images gives them.
  Tensors ReadImageSizes(const CallContext& call);

 private:
  BatchReader(const Plan& plan, std::unique_ptr<SampleSource> source);

  struct Cached {
    SampleParts parts;
    Sample sample;
  };
  // A sample with at least these parts.
  const Sample& Get(int64_t number, SampleParts parts);
  size_t EncoderOf(std::string_view module) const;  // index in DataPlan::encoders
  at::Tensor SampleRows(const LaneSamples& lane, size_t encoder);
  at::Tensor ImageGrid(const LaneSamples& lane, size_t encoder);
  at::Tensor DocumentEnds(const LaneSamples& lane);

  const DataPlan data_;
  const int64_t length_;
  std::unique_ptr<SampleSource> source_;
  std::map<int64_t, Cached> cache_;  // by number: colocated modules and pipeline stages read a sample more than once
  size_t cache_samples_ = 0;
  const int threads_;
};

// How many outputs of a data instruction belong on the device: the first ones. The others stay in host memory, because
// handlers plan their work by them, and must not wait for the device.
size_t ReadForDevice(OpKind kind);

}  // namespace planwright::executor
