// Deliberate faults in the lowered program, each of one that only one feature could have. faulty_executor damages the
// plan after it was read, and does not verify it. plan_faults_test shows that losses, norms or gradients notice.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "planner/plan/plan.h"
#include "tests/numerics/layouts.h"

namespace planwright::testing {

struct PlanFault {
  std::string name;       // PLANWRIGHT_FAULT=plan:NAME
  Layout layout;          // on which it is tried
  void (*damage)(Plan&);  // Bug() if there is nothing to damage
  friend void PrintTo(const PlanFault& fault, std::ostream* out) { *out << fault.name; }
};

std::vector<PlanFault> PipelineFaults();
std::vector<PlanFault> ContextParallelFaults();
std::vector<PlanFault> EncoderContextParallelFaults();
std::vector<PlanFault> ExpertTpFaults();
std::vector<PlanFault> DispatchFaults();
std::vector<PlanFault> FrozenFaults();
std::vector<PlanFault> RecomputeFaults();
std::vector<PlanFault> PackedDocumentFaults();
std::vector<PlanFault> EncodersFaults();
std::vector<PlanFault> EdgeFaults();
std::vector<PlanFault> UndividedFaults();
std::vector<PlanFault> PublishedModelFaults();
std::vector<PlanFault> ExpertWeightFaults();
std::vector<PlanFault> DecoderFaults();

inline std::vector<PlanFault> AllPlanFaults() {
  std::vector<PlanFault> all;
  for (auto* of : {PipelineFaults, ContextParallelFaults, EncoderContextParallelFaults, ExpertTpFaults, DispatchFaults,
                   FrozenFaults, RecomputeFaults, PackedDocumentFaults, EncodersFaults, EdgeFaults, UndividedFaults,
                   PublishedModelFaults, ExpertWeightFaults, DecoderFaults}) {
    for (PlanFault& fault : of()) all.push_back(std::move(fault));
  }
  return all;
}

// Bug() if there is none.
Block& BlockNamed(Plan& plan, const std::string& name);
Role& RoleNamed(Plan& plan, const std::string& name);
const Layout& LayoutNamed(const std::vector<Layout>& layouts, const std::string& name);

// The first instruction of a kind.
std::vector<Instruction>::iterator FirstOf(Block& block, OpKind kind);

// The instruction that makes a value.
std::vector<Instruction>::iterator MakerOf(Block& block, const std::string& value);

// Where a rank should get `sum`, of terms of a group that has the ranks of tp, it keeps its own term.
void KeepOwnTerm(Plan& plan, const std::string& block, const std::string& sum);

// In `block`, `reader` reads `value` with its two halves, one of each of two members, in the other order.
void SwapMembers(Plan& plan, const std::string& block, const std::string& value, OpKind reader);

// The call of a block in a microbatch.
Instruction& CallOf(Role& role, const std::string& block, int microbatch);

// Gives `reader`, an instruction of the list, the value `to` in place of `from`, and makes the list free every value
// after its last use again.
void ReadInstead(std::vector<Instruction>& list, Instruction& reader, const std::string& from, const std::string& to);

}  // namespace planwright::testing
