#include <algorithm>
#include <string_view>

#include "planner/base/text/bug.h"
#include "tests/numerics/faults/plan_fault.h"

namespace planwright::testing {
namespace {

// All instructions of this kind take the sample for one document.
void LoseDocuments(Plan& plan, OpKind kind) {
  size_t found = 0;
  for (Block& block : plan.blocks) {
    for (Instruction& op : block.body) {
      if (op.kind == kind) found += std::erase(op.inputs, "document_ends");
    }
  }
  if (found == 0) Bug("no " + std::string(OpName(kind)) + " of the plan reads document_ends");
}

}  // namespace

std::vector<PlanFault> PackedDocumentFaults() {
  const std::vector<std::string> packed = {"data.packed_documents=true"};
  const Layout one = {"packed", Join(EncoderOn(1, 1), LanguageOn(1, 1, 1, 1)), packed};
  const Layout cp2 = {"packed_cp2", Join(EncoderOn(1, 1), LanguageOn(1, 2, 1, 1), Parallel("language", {{"cp", 2}})),
                      packed};
  return {
      {"packed_attention_sees_other_documents", one, [](Plan& plan) { LoseDocuments(plan, OpKind::kCausalAttention); }},
      {"packed_attention_grad_sees_other_documents", cp2,
       [](Plan& plan) { LoseDocuments(plan, OpKind::kCausalAttentionGrad); }},
      {"packed_convolution_reads_other_documents", one, [](Plan& plan) { LoseDocuments(plan, OpKind::kMambaConv); }},
      {"packed_convolution_grad_reads_other_documents", one,
       [](Plan& plan) { LoseDocuments(plan, OpKind::kMambaConvGrad); }},
      {"packed_state_outlives_documents", one, [](Plan& plan) { LoseDocuments(plan, OpKind::kMambaScan); }},
      {"packed_state_grad_outlives_documents", cp2, [](Plan& plan) { LoseDocuments(plan, OpKind::kMambaScanGrad); }},
  };
}

}  // namespace planwright::testing
