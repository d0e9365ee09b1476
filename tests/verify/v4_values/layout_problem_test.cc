// V4 of layouts over one instruction. Whole plans with wrong layouts are in tests/verify/mutants.
#include "planner/verify/v4_values/layout_problem.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace planwright {
namespace {

using ::testing::HasSubstr;
using State = AxisLayout::State;

// cross_entropy_parts of logits [S,B,V] and labels [B,S], where one axis cuts the logits along `logits` and the labels
// along `labels`; -1: it cuts them not at all.
std::string CrossEntropyProblem(Axis axis, int logits, int labels, State made) {
  Instruction op;
  op.kind = OpKind::kCrossEntropyParts;
  op.inputs = {"logits", "labels"};
  ValueType logits_type{.dtype = DType::kFp64, .dims = {Dim(int64_t{8}), Dim(int64_t{1}), Dim(int64_t{16})}},
      labels_type{.dtype = DType::kInt64, .dims = {Dim(int64_t{1}), Dim(int64_t{8})}};
  if (logits >= 0) logits_type.layout[axis] = {State::kSharded, logits, false};
  if (labels >= 0) labels_type.layout[axis] = {State::kSharded, labels, false};
  ValueType m{.dtype = DType::kFp64, .dims = {Dim(int64_t{8}), Dim(int64_t{1})}},
      parts{.dtype = DType::kFp64, .dims = {Dim(int64_t{4}), Dim(int64_t{8}), Dim(int64_t{1})}};
  if (made == State::kPartial) m.layout[axis] = parts.layout[axis] = {State::kPartial};
  if (made == State::kSharded) m.layout[axis] = {State::kSharded, 0}, parts.layout[axis] = {State::kSharded, 1};
  op.outputs = {{"m_part", m}, {"parts", parts}};
  return LayoutProblem({.instruction = &op, .inputs = {&logits_type, &labels_type}}, axis);
}

// The handler takes label - tp_rank * V, so over tp the logits must be cut along the vocabulary.
TEST(LayoutProblem, TpCutsTheVocabularyAndOnlyTpDoes) {
  EXPECT_EQ(CrossEntropyProblem(Axis::kTp, 2, -1, State::kPartial), "");
  EXPECT_EQ(CrossEntropyProblem(Axis::kCp, 0, 1, State::kSharded), "");
  EXPECT_EQ(CrossEntropyProblem(Axis::kCp, -1, -1, State::kReplicated), "");
  EXPECT_THAT(CrossEntropyProblem(Axis::kTp, 0, 1, State::kSharded), HasSubstr("the vocabulary is not cut over tp"));
  EXPECT_THAT(CrossEntropyProblem(Axis::kTp, -1, -1, State::kReplicated), HasSubstr("vocabulary is not cut over tp"));
  EXPECT_THAT(CrossEntropyProblem(Axis::kCp, 2, -1, State::kPartial), HasSubstr("logits is cut over cp"));
}

}  // namespace
}  // namespace planwright
