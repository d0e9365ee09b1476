// Which form a compute instruction takes. tests/executor/kernels/forms_test.cc has what the CUDA build adds.
#include "executor/ops/forms.h"

#include <gtest/gtest.h>

#include <string>

#include "planner/plan/op_table.h"

namespace planwright::executor {
namespace {

TEST(Forms, TheTableOfOperationsNamesTheKindsThatHaveAFastOne) {
  int fast = 0;
  for (const OpInfo& info : AllOps()) {
    EXPECT_EQ(HasFastForm(info.kind), !info.fast.empty()) << info.name;
    fast += HasFastForm(info.kind);
  }
  EXPECT_GT(fast, 30);
}

TEST(Forms, OnACpuEveryKindTakesItsPlainOne) {
  const Tensors none;
  for (const OpInfo& info : AllOps()) {
    Instruction instruction;
    instruction.kind = info.kind;
    // Nothing is asked of its operands: it has none here.
    const ComputeForm form = ChooseForm({instruction, nullptr, at::kCPU, {}, none, none});
    EXPECT_EQ(form.run, PlainFormOf(info.kind)) << info.name;
    EXPECT_EQ(form.run != nullptr, info.op_class == OpClass::kCompute) << info.name;
    EXPECT_EQ(form.choice, info.fast.empty() ? ComputeForm::Choice::kOnly : ComputeForm::Choice::kPlain) << info.name;
  }
}

}  // namespace
}  // namespace planwright::executor
