// V10 of run-time sizes: a value whose rows are counted by another size of its module, wherever they are named, is
// refused. Nothing else would notice: sizes at run time are not known before.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "planner/verify/verify.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

// Every size has a name in this plan: the encoder is cut over cp, experts are exchanged and cut over expert_tp.
Plan EverySize() {
  return CompiledFile(InSource("recipes/nemotron_moe_vlm_tiny.yaml"),
                      {"modules.radio_encoder.placement.ranks=2", "modules.radio_encoder.parallel.tp=1",
                       "modules.radio_encoder.parallel.cp=2", "modules.language.placement.first_rank=2",
                       "modules.language.placement.ranks=4", "modules.language.parallel.tp=1",
                       "modules.language.parallel.ep=2", "modules.language.parallel.expert_tp=2"});
}

size_t RenameIn(std::vector<Output>& values, const std::string& from, const std::string& to) {
  size_t renamed = 0;
  for (Output& value : values) {
    for (Dim& dim : value.type.dims) {
      if (dim != Dim(from)) continue;
      dim = to;
      ++renamed;
    }
  }
  return renamed;
}

// The size of all values that have it, and the order of the rows with it: what a program that mixed up two sizes would
// write.
size_t RenameEverywhere(Plan& plan, const std::string& from, const std::string& to) {
  size_t renamed = 0;
  for (Block& block : plan.blocks) {
    for (auto* list : {&block.inputs, &block.takes}) renamed += RenameIn(*list, from, to);
    for (Instruction& op : block.body) renamed += RenameIn(op.outputs, from, to);
  }
  for (Role& role : plan.roles) {
    for (auto list : {&Role::setup, &Role::resume, &Role::step, &Role::save, &Role::teardown}) {
      for (Instruction& op : role.*list) renamed += RenameIn(op.outputs, from, to);
    }
  }
  return renamed;
}

TEST(RunTimeSizes, AnotherSizeOfTheModuleIsRefused) {
  const Plan sound = EverySize();
  ASSERT_TRUE(VerifyPlan(sound).empty());
  size_t pairs = 0;
  for (const Symbol& from : sound.symbols) {
    for (const Symbol& to : sound.symbols) {
      const auto module = [](const Symbol& symbol) { return symbol.name.substr(0, symbol.name.find('.')); };
      if (from.name == to.name || module(from) != module(to)) continue;
      Plan damaged = sound;
      ASSERT_GT(RenameEverywhere(damaged, from.name, to.name), 0u) << "nothing has the size " << from.name;
      EXPECT_FALSE(VerifyPlan(damaged).empty()) << "rows of " << from.name << " are counted by " << to.name;
      ++pairs;
    }
  }
  printf("%zu pairs of sizes\n", pairs);
  EXPECT_GE(pairs, 30u);
}

}  // namespace
}  // namespace planwright::testing
