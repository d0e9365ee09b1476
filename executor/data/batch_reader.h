// The data instructions: samples as tensors. Every rank reads the samples of its own lane; ranks of one lane read the
// same samples and get the same tensors (docs/training/data.md#lanes).
#pragma once

#include <ATen/core/Tensor.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "executor/data/sample_slots.h"
#include "executor/data/samples_ahead.h"
#include "executor/ops/handler.h"
#include "planner/data/samples/sample_source.h"

namespace planwright::executor {

// How many threads decode, and how many bytes samples may take that are decoded and not yet used.
struct ReadingLimits {
  int threads = 1;
  int64_t bytes = 0;
  // Parts of the machine, which its ranks share (docs/training/data.md#reading-ahead).
  static ReadingLimits OfRank();
};

// Read is for one thread at a time. Reading throws FileError with the source's message if a sample cannot be read.
class BatchReader {
 public:
  // Patches and masks become `dtype`. `slots`: of the same plan and source.
  BatchReader(const Plan& plan, at::ScalarType dtype, std::shared_ptr<const SampleSource> source,
              std::shared_ptr<SampleSlots> slots, ReadingLimits limits = ReadingLimits::OfRank());

  // Reads a set of Plan::evaluation instead, round by round: what Begin and Read call a step is a round. Samples past
  // the end of the set are empty: padding, without images, of which nothing is learnt. `source`: of the set.
  BatchReader(const Plan& plan, size_t set, at::ScalarType dtype, std::shared_ptr<const SampleSource> source,
              ReadingLimits limits = ReadingLimits::OfRank());

  // Called once: these are the reads of each step from `first_step` to `last_step`, in program order (from 0; their
  // `call.step` does not matter). Their samples are decoded from now on, on the threads of this rank.
  void Begin(std::vector<DataRead> reads, int64_t first_step, int64_t last_step);

  // What a data instruction reads, in host memory. Called for the reads in their order, step by step.
  //
  // read_tokens, for the B samples of the lane. For the device: tokens i64 [B,S], labels i64 [B,S], loss_mask `dtype`
  // [B,S], and loss_tokens i64 [1], the number of positions that count. For the host: sample_rows i64 [B] for each
  // encoder, the tokens that each sample has for it (without an encoder once, zeros); with packed documents also
  // document_ends i64 [D] of the lane's one sample.
  //
  // read_images of the call's module, for the n images of the lane. For the device: patches `dtype` [P, 3 patch^2]. For
  // the host: image_grid i64 [n,2] (rows and columns of patches), image_ids i64 [n,2] (sample number, index in the
  // sample), sample_rows i64 [samples of the lane]. Without images P and n are 0. With cp the patches are those of this
  // rank's part (planner/plan/image_bands.h); the rest is of the whole lane.
  //
  // read_positions, for the device: positions i64 [1,S,B], from 0 in each document; i64 [3,S,B] with rows and columns
  // of image tokens (token_positions.h), if the instruction says so.
  //
  // read_image_sizes of the call's module: image_grid and sample_rows, as read_images gives them.
  //
  // read_sources, for the device: rows i64 [B], the part of the sums by source to which each sample belongs, and counts
  // i64 [B], the number of its positions that count in the loss.
  Tensors Read(const Instruction& instruction, const CallContext& call);

  // How many bytes samples hold that are not used yet (SamplesAhead::held).
  SamplesAhead::Held held() const;

 private:
  struct LaneSample {
    int64_t number = 0;
    const Sample* sample = nullptr;
    const DecodedSample* decoded = nullptr;
  };
  using Lane = std::vector<LaneSample>;

  BatchReader(const Plan& plan, DataPlan data, at::ScalarType dtype, std::shared_ptr<const SampleSource> source,
              std::shared_ptr<SampleSlots> slots, int64_t samples, int64_t first_part, ReadingLimits limits);
  std::vector<SampleNeed> NeedsOf(int64_t step);
  int64_t NumberOf(int64_t slot) const { return slots_ == nullptr ? slot : slots_->NumberOf(slot); }
  bool FillsUp(int64_t number) const { return number >= samples_; }
  int64_t BytesOf(const SampleNeed& need) const;
  DecodedSample DecodeOf(const SampleNeed& need) const;
  int64_t PartOf(int64_t number) const;
  size_t EncoderOf(std::string_view module) const;  // index in DataPlan::encoders
  Lane LaneOf(const CallContext& call);
  Tensors ReadTokens(const Lane& lane) const;
  at::Tensor Positions(const Lane& lane, bool of_images) const;  // i64 [1 or 3,S,B], from 0 in each document
  Tensors ReadImages(const Lane& lane, const CallContext& call) const;
  Tensors ReadImageSizes(const Lane& lane, const CallContext& call) const;
  Tensors ReadSourceParts(const Lane& lane) const;
  at::Tensor SampleRows(const Lane& lane, size_t encoder) const;
  at::Tensor ImageGrid(const Lane& lane, size_t encoder) const;
  at::Tensor DocumentEnds(const Lane& lane) const;

  const DataPlan data_;
  const int64_t length_;
  const at::ScalarType dtype_;
  const std::shared_ptr<const SampleSource> source_;
  const std::shared_ptr<SampleSlots> slots_;  // null: slots are numbers
  const int64_t samples_;                     // of the set; numbers from here on fill its last round up
  const int64_t first_part_;                  // of the sums by source
  std::vector<DataRead> reads_;               // of a step
  SamplesAhead ahead_;                        // last: its threads use the rest
};

// How many outputs of a data instruction belong on the device: the first ones. The others stay in host memory, because
// handlers plan their work by them, and must not wait for the device.
size_t ReadForDevice(OpKind kind);

}  // namespace planwright::executor
