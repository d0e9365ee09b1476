// Single reads of a plan, each by a reader of its own.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "executor/data/batch_reader.h"

namespace planwright::executor {

class Reads {
 public:
  explicit Reads(const Plan& plan) : plan_(plan) {
    absl::StatusOr<std::unique_ptr<SampleSource>> source = OpenSampleSource(plan);
    EXPECT_TRUE(source.ok()) << source.status();
    if (source.ok()) source_ = *std::move(source);
  }

  Tensors Tokens(const CallContext& call, at::ScalarType dtype) { return Read(OpKind::kReadTokens, call, dtype); }
  Tensors Images(const CallContext& call, at::ScalarType dtype) { return Read(OpKind::kReadImages, call, dtype); }
  Tensors Sizes(const CallContext& call) { return Read(OpKind::kReadImageSizes, call, at::kDouble); }

 private:
  Tensors Read(OpKind kind, const CallContext& call, at::ScalarType dtype) {
    Instruction instruction;
    instruction.kind = kind;
    BatchReader reader(plan_, dtype, source_, std::make_shared<SampleSlots>(plan_, source_));
    reader.Begin({{&instruction, call}}, call.step, call.step);
    const Tensors values = reader.Read(instruction, call);
    EXPECT_EQ(reader.held().now, 0) << "what has been read is let go";
    return values;
  }

  const Plan plan_;
  std::shared_ptr<const SampleSource> source_;
};

}  // namespace planwright::executor
