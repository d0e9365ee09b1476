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

// causal_attention_all_kv of q [S,B,8] and kv [S,B,8], where one axis cuts q and kv along these dims; -1: it cuts them
// not at all. The first output is held as q, the second, lse [B,2,S], as its heads or positions are.
std::string AttentionProblem(Axis axis, int q, int kv) {
  Instruction op;
  op.kind = OpKind::kCausalAttentionAllKv;
  op.inputs = {"q", "kv"};
  const auto type = [&](std::vector<Dim> dims, int cut) {
    ValueType made{.dtype = DType::kFp64, .dims = std::move(dims)};
    if (cut >= 0) made.layout[axis] = {State::kSharded, cut, false};
    return made;
  };
  const std::vector<Dim> features = {Dim(int64_t{8}), Dim(int64_t{1}), Dim(int64_t{8})};
  const ValueType q_type = type(features, q), kv_type = type(features, kv);
  op.outputs = {{"a", type(features, q)},
                {"lse", type({Dim(int64_t{1}), Dim(int64_t{2}), Dim(int64_t{8})}, q == 2   ? 1
                                                                                  : q == 0 ? 2
                                                                                           : -1)}};
  return LayoutProblem({.instruction = &op, .inputs = {&q_type, &kv_type}}, axis);
}

// The handler takes the key head of its tp_rank, so over tp the queries must be cut by heads, and keys be whole.
TEST(LayoutProblem, TpCutsQueriesThatShareKeys) {
  EXPECT_EQ(AttentionProblem(Axis::kTp, 2, -1), "");
  EXPECT_EQ(AttentionProblem(Axis::kCp, -1, -1), "");
  EXPECT_THAT(AttentionProblem(Axis::kTp, -1, -1), HasSubstr("its heads are not cut over tp"));
  EXPECT_THAT(AttentionProblem(Axis::kTp, 2, 2), HasSubstr("needs all of the dim along which kv is cut over tp"));
  EXPECT_THAT(AttentionProblem(Axis::kTp, 0, -1), HasSubstr("needs all of the dim along which q is cut over tp"));
  EXPECT_THAT(AttentionProblem(Axis::kCp, 2, -1),
              HasSubstr("the keys of its heads by the tp coordinate, but q is cut"));
}

}  // namespace
}  // namespace planwright
