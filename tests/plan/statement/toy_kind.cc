#include "tests/plan/statement/toy_kind.h"

#include <algorithm>
#include <string_view>

#include "planner/base/files/file_io.h"
#include "planner/base/text/bug.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

void Replace(std::string& text, std::string_view line, std::string_view by) {
  const size_t at = text.find(line);
  Require(at != std::string::npos, "hybrid_lm.model has no line " + std::string(line));
  text.replace(at, line.size(), by);
}

}  // namespace

std::string StatementText(const std::string& kind) {
  std::string text = ReadWholeFile(InSource("planner/plan/kinds/" + kind + ".model"), 1 << 20).value_or("");
  text.resize(std::min(text.size(), text.find("\ndialect ")));
  return text;
}

std::string ToyKind() {
  std::string text = StatementText("hybrid_lm");
  Replace(text,
          "  experts down mixer.experts.{expert}.down_proj.weight [hidden, moe.ffn] cut 1 normal [residual_std]\n",
          "  joined up mixer.experts.{expert}.wide_proj.weight [moe.shared_ffn, hidden] cut 0 normal [2 * init_std]\n"
          "  experts down mixer.experts.{expert}.down_proj.weight [hidden, moe.ffn + moe.shared_ffn]\n"
          "    cut 1 segments [moe.ffn, moe.shared_ffn] normal [residual_std]\n");
  Replace(text, "  needs expert_tp divides moe.ffn\n",
          "  needs expert_tp divides moe.ffn\n  needs expert_tp divides moe.shared_ffn\n");
  Replace(text, "  weight lm_head lm_head.weight [vocabulary, hidden] cut 0 padded normal [init_std]\n",
          "  shared lm_head = embed.embeddings\n  needs pp at most 1\n");
  Replace(text, "  each x positions = merge_images x rows* tokens [] image_token token*\n",
          "  each bent* = squared_relu rows*\n"
          "  each x positions = merge_images x bent* tokens [] image_token token*\n");
  return text;
}

std::string GatedExpertsKind() {
  std::string text = StatementText("hybrid_lm");
  Replace(text,
          "constant moe.scale real of E from 1e-6 to 1000000 = 1.0: factor on the weights of routed experts\n"
          "constant moe.aux_loss real or 0 of E to 1000000 = 0.0: coefficient of the load-balancing loss\n"
          "constant moe.bias_rate real or 0 of E to 1000000 = 0.0: step size of the expert bias, which balances the "
          "load\n",
          "constant moe.aux_loss real or 0 of E to 1000000 = 0.0: coefficient of the load-balancing loss\n");
  Replace(text, "  buffer gate_bias mixer.gate.e_score_correction_bias [moe.experts] zeros\n", "");
  Replace(text, "  experts up mixer.experts.{expert}.up_proj.weight [moe.ffn, hidden] cut 0 normal [init_std]\n",
          "  experts gate_up mixer.experts.{expert}.gate_proj.weight [moe.ffn, hidden] cut 0 normal [init_std]\n"
          "  joined gate_up mixer.experts.{expert}.up_proj.weight [moe.ffn, hidden] cut 0 normal [init_std]\n");
  Replace(text, "= route n [gate gate_bias]", "= route_softmax n [gate]");
  Replace(text, "  when trains_backbone: = accumulate_counts counts\n", "");
  Replace(text, "= experts rows row_weights counts [up down]",
          "= gated_experts rows row_weights counts [gate_up down]");
  Replace(text, "gather_tokens.n route all_reduce", "gather_tokens.n route_softmax all_reduce");
  Replace(text, "    experts reduce_scatter_v", "    gated_experts reduce_scatter_v");
  Replace(text, "all_gather_v experts_grad", "all_gather_v gated_experts_grad");
  Replace(text, "permute_rows_grad route_grad", "permute_rows_grad route_softmax_grad");
  return text;
}

}  // namespace planwright::testing
