#include <string_view>

#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

// The first instruction of this kind in the block whose first output has this name.
Instruction& Find(Plan& plan, std::string_view block, OpKind kind, std::string_view output) {
  for (Block& candidate : plan.blocks) {
    if (candidate.name != block) continue;
    for (Instruction& op : candidate.body) {
      if (op.kind == kind && !op.outputs.empty() && op.outputs[0].name == output) return op;
    }
  }
  Bug("the plan has no " + std::string(OpName(kind)) + " that makes " + std::string(output));
}

// Queries see keys in the order of ranks, not of positions.
void GatherKeysInRankOrder(Plan& plan) {
  Find(plan, "language.attention.forward", OpKind::kAllGather, "kv_all").attributes.erase("zigzag");
}

// Each rank keeps the gradient of its keys from its own queries only.
void KeepOwnTermOfKeys(Plan& plan) {
  Instruction& op = Find(plan, "language.attention.backward", OpKind::kReduceScatter, "dkv");
  op.kind = OpKind::kLocalSlice;
  op.group.clear();
  op.attributes = {{"dim", int64_t{0}}, {"zigzag", int64_t{1}}, {"axis", std::string("cp")}};
}

// Ranks get z | x | B | C | dt cut as one run of features: shapes are right, but a rank has the z of several heads and
// nothing of the rest.
void CutFeaturesAsOneSegment(Plan& plan) {
  Instruction& op = Find(plan, "language.mamba.forward", OpKind::kReshard, "zxbcdt");
  int64_t sum = 0;
  for (int64_t segment : *op.FindIntegers("segments")) sum += segment;
  op.attributes["segments"] = std::vector<int64_t>{sum};
}

// Every cp rank of a lane counts the lane's loss tokens.
void CountLossTokensOfEachCpRank(Plan& plan) {
  for (Role& role : plan.roles) {
    for (Instruction& op : role.step) {
      const std::string* into = op.FindText("into");
      if (into != nullptr && *into == "$integers.loss_tokens") op.attributes.erase("once_over");
    }
  }
}

// An encoder gets the gradient of the image rows at the positions of one cp rank.
void KeepOwnImageGradients(Plan& plan) {
  Find(plan, "language.embed.backward", OpKind::kAllReduce, "drows").attributes["reduce"] = std::string("max");
}

// Each rank has the labels of consecutive positions.
void CutLabelsInRankOrder(Plan& plan) {
  Find(plan, "language.head.forward", OpKind::kLocalSlice, "labels_local").attributes.erase("zigzag");
}

// The auxiliary loss takes the counts of a rank's part for those of the sample.
void CountExpertsOfOwnPart(Plan& plan) {
  Find(plan, "language.moe.forward", OpKind::kAllReduce, "aux_counts").attributes["reduce"] = std::string("max");
}

}  // namespace

std::vector<PlanFault> ContextParallelFaults() {
  const Layout cp2 = {"cp2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), Parallel("language", {{"cp", 2}}))};
  return {
      {"cp_gathers_keys_in_rank_order", cp2, GatherKeysInRankOrder},
      {"cp_keeps_own_term_of_keys", cp2, KeepOwnTermOfKeys},
      {"cp_cuts_features_as_one_segment", cp2, CutFeaturesAsOneSegment},
      {"cp_counts_loss_tokens_twice", cp2, CountLossTokensOfEachCpRank},
      {"cp_keeps_own_image_gradients", cp2, KeepOwnImageGradients},
      {"cp_cuts_labels_in_rank_order", cp2, CutLabelsInRankOrder},
      {"cp_counts_experts_of_own_part", cp2, CountExpertsOfOwnPart},
  };
}

}  // namespace planwright::testing
