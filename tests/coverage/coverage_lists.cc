// Prints what tests try, from the code that they try it with: layouts, plan faults, mutants and kill cases.
// coverage_test.py compares it with the committed list.
#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "planner/cli/load_plan.h"
#include "tests/end_to_end/kill_cases.h"
#include "tests/numerics/covering_layouts.h"
#include "tests/numerics/faults/plan_fault.h"
#include "tests/numerics/layouts.h"
#include "tests/support/folders.h"
#include "tests/verify/mutants/mutants.h"

namespace planwright::testing {
namespace {

const std::string kTiny = InSource("recipes/nemotron_moe_vlm_tiny.yaml");

void Print(const char* title, const std::vector<std::string>& lines) {
  const auto entries =
      std::count_if(lines.begin(), lines.end(), [](const std::string& line) { return line[0] != ' '; });
  std::printf("\n# %s: %td\n", title, entries);
  for (const std::string& line : lines) std::printf("%s\n", line.c_str());
}

std::vector<std::string> Described(const std::vector<Layout>& layouts) {
  std::vector<std::string> lines;
  for (const Layout& layout : layouts) {
    lines.push_back(layout.name + " of " + layout.recipe);
    const auto add = [&](const char* what, const std::vector<std::string>& words) {
      if (!words.empty()) lines.push_back("    " + std::string(what) + " " + absl::StrJoin(words, " "));
    };
    add("training", layout.training);
    add("layout", layout.overrides);
    add("one rank", layout.one_rank);
  }
  return lines;
}

std::vector<std::string> NamesOf(const std::vector<Layout>& layouts) {
  std::vector<std::string> names;
  for (const Layout& layout : layouts) names.push_back(layout.name);
  return names;
}

Plan PlanOf(const std::vector<std::string>& overrides) { return LoadPlan(kTiny, overrides).plan.value(); }

// A generator skips what a plan does not have, so these plans have what it damages.
std::vector<std::string> KindsOf(std::vector<Mutant> (*mutants)(const Plan&)) {
  const std::vector<std::string> both = Join(EncoderOn(2, 2), LanguageOn(2, 4, 2, 4)),
                                 pipeline =
                                     Join(EncoderOn(1, 1), LanguageOn(1, 4, 2, 1), Parallel("language", {{"pp", 2}})),
                                 gathered = Join(both, {"modules.language.parallel.dispatch=all_gather"}),
                                 frozen = Join(both, {"modules.radio_encoder.train.backbone=frozen"}),
                                 overlapped =
                                     Join(both, {"gradients.overlap_reduce=true", "gradients.overlap_gather=true",
                                                 "gradients.buckets=3", "modules.language.recompute=[full]"}),
                                 kept = Join(both, {"checkpoint.every_steps=2"});
  std::set<std::string> kinds;
  for (const auto& overrides : {both, pipeline, gathered, frozen, overlapped, kept}) {
    for (const Mutant& mutant : mutants(PlanOf(overrides))) kinds.insert(mutant.kind);
  }
  return {kinds.begin(), kinds.end()};
}

std::vector<std::string> KillSample() {
  std::vector<std::string> names;
  const Plan plan = PlanOf(Join(EncoderOn(2, 2), LanguageOn(2, 2, 2, 1), {"checkpoint.every_steps=2"}));
  for (const KillCase& one : SampleOf(KillCases(plan), 40))
    names.push_back(absl::StrJoin({one.role, one.phase, one.fault, one.moment}, " "));
  return names;
}

std::vector<std::string> FaultNames() {
  std::vector<std::string> names;
  for (const PlanFault& fault : AllPlanFaults()) names.push_back(fault.name + " on " + fault.layout.name);
  return names;
}

void PrintAll() {
  Print("layouts of the tiny models", Described(AllLayouts()));
  Print("layouts of the toy", Described(ToyLayouts()));
  Print("layouts of decoders", Described(DecoderLayouts()));
  Print("./dev test: layouts of the tiny models in fp64", NamesOf(CoveringLayouts(AllLayouts(), Cover::kPairs)));
  Print("./dev test: layouts of the tiny models in fp32", NamesOf(CoveringLayouts(AllLayouts(), Cover::kEach)));
  Print("./dev test: layouts of the toy", NamesOf(CoveringLayouts(ToyLayouts(), Cover::kEach)));
  Print("./dev test: layouts of decoders in fp64", NamesOf(CoveringLayouts(DecoderLayouts(), Cover::kPairs)));
  Print("faults in lowered programs", FaultNames());
  Print("mutants of blocks", KindsOf(BlockMutants));
  Print("mutants of programs", KindsOf(ProgramMutants));
  Print("mutants of communication", KindsOf(CommunicationMutants));
  Print("mutants of structures", KindsOf(StructureMutants));
  Print("mutants of checkpoints", KindsOf(CheckpointMutants));
  Print("./dev test: cases of the kill matrix", KillSample());
}

}  // namespace
}  // namespace planwright::testing

int main() { planwright::testing::PrintAll(); }
