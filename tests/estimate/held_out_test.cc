// The prediction beside runs that it was not made from: the two-GPU columns of docs/gpu.md. The shares of
// planner/rates/kind_rates.cc come from one GPU. The table stands in docs/step_time.md#held-out, as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "planner/estimate/step_time.h"
#include "planner/link/linked_program.h"
#include "planner/link/program_parts.h"
#include "planner/run_files/file_io.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"

namespace planwright {
namespace {

// Milliseconds of the traced step: sums over all streams.
struct Parts {
  double step = 0, experts = 0, mamba = 0, head = 0, attention = 0, encoder = 0, optimizer = 0, communication = 0,
         overlap = 0;
};

struct Row {
  const char* name;
  double Parts::*value;
};
constexpr Row kRows[] = {{"a step", &Parts::step},
                         {"expert layers", &Parts::experts},
                         {"Mamba-2 layers", &Parts::mamba},
                         {"head and loss", &Parts::head},
                         {"attention layers", &Parts::attention},
                         {"encoder layers", &Parts::encoder},
                         {"end of the step", &Parts::optimizer},
                         {"all communication", &Parts::communication},
                         {"at the same time as something else", &Parts::overlap}};

struct Column {
  const char* recipe;
  std::vector<std::string> overrides;
  Parts measured;  // docs/gpu.md#how-fast-are-two-gpus
};
const Column kColumns[] = {
    {"text_only", {}, {1420, 805, 314, 196, 154, 0, 96, 195, 142}},
    {"text_only",
     {"batch.global_samples=32", "budget.train_samples=1600", "budget.learning_rate.decay_samples=1600"},
     {2773, 1616, 624, 389, 303, 0, 95, 374, 260}},
    {"frozen", {}, {2058, 801, 304, 188, 146, 611, 99, 205, 142}},
    {"", {}, {3909, 799, 386, 189, 147, 2368, 117, 221, 154}},
};

Parts Predicted(const Column& column) {
  const std::string name = column.recipe;
  const Plan plan = testing::CompiledFile(
      InSource("recipes/nemotron_moe_vlm_20l_2g" + (name.empty() ? "" : "_" + name) + ".yaml"), column.overrides);
  const StepTime time = TimeStep(plan);
  const RoleTime& role = time.roles.front();
  LinkedBlocks blocks(plan);
  const LinkedProgram program(blocks, *role.role);
  std::map<std::string, double> by_part;
  Parts parts;
  double all = 0;
  for (size_t i = 0; i < role.entries.size(); ++i) {
    const LinkedEntry& entry = program.entries()[program.step().first + i];
    const double ms = 1e3 * role.entries[i].length;
    all += ms;
    by_part[PartOf(program, entry)] += ms;
    if (entry.instruction->op_class == OpClass::kCommunication) parts.communication += ms;
  }
  parts.step = 1e3 * time.length;
  parts.experts = by_part["language.moe"];
  parts.mamba = by_part["language.mamba"] + by_part["language.mamba.recompute"];
  parts.head = by_part["language.head"];
  parts.attention = by_part["language.attention"];
  parts.encoder = by_part["radio_encoder.layer"] + by_part["radio_encoder.layer.recompute"];
  parts.optimizer = by_part["optimizer"];
  parts.overlap = all - 1e3 * (role.busy + role.communication);
  return parts;
}

TEST(HeldOut, StepsOfTwoGpus) {
  std::string table =
      "| predicted, in ms | text, 8 microbatches | text, 16 | frozen, 8 | learning, 8 |\n|---|---|---|---|---|\n";
  std::array<Parts, std::size(kColumns)> predicted;
  for (size_t c = 0; c < predicted.size(); ++c) predicted[c] = Predicted(kColumns[c]);
  for (const Row& row : kRows) {
    absl::StrAppend(&table, "| ", row.name, " |");
    for (size_t c = 0; c < predicted.size(); ++c) {
      const double is = predicted[c].*row.value, was = kColumns[c].measured.*row.value;
      if (was > 0) absl::StrAppendFormat(&table, " %.0f, %+.0f %%", is, 100 * (is / was - 1));
      absl::StrAppend(&table, " |");
    }
    absl::StrAppend(&table, "\n");
  }
  absl::StrReplaceAll({{"|  |", "| |"}}, &table);
  const absl::StatusOr<std::string> page = ReadWholeFile(InSource("docs/step_time.md"), 1 << 20);
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, ::testing::HasSubstr(table)) << "docs/step_time.md#held-out should have this table:\n" << table;
  for (size_t c = 0; c < predicted.size(); ++c)
    EXPECT_NEAR(predicted[c].step / kColumns[c].measured.step, 1, 0.15) << "column " << c;
}

// Which layouts are faster, on 4 nodes of 8 H100: what a person would say, and why.
double SecondsOf(const std::vector<std::string>& layout) {
  std::vector<std::string> overrides = {"cluster.nodes=4",
                                        "cluster.gpu=h100_sxm",
                                        "batch.global_samples=192",
                                        "budget.train_samples=1920",
                                        "budget.learning_rate.decay_samples=1920",
                                        "modules.radio_encoder.train={backbone: frozen}",
                                        "modules.language.recompute=full",
                                        "data.image_grids=[[64, 96]]",
                                        "data.min_images=2",
                                        "data.max_images=2"};
  overrides.insert(overrides.end(), layout.begin(), layout.end());
  return TimeStep(testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"), overrides)).length;
}

double Colocated(int tp, int ep) {
  return SecondsOf({"modules.radio_encoder.placement={first_rank: 0, ranks: 32}",
                    "modules.language.placement={first_rank: 0, ranks: 32}",
                    absl::StrCat("modules.radio_encoder.parallel={tp: ", tp, "}"),
                    absl::StrCat("modules.language.parallel={tp: ", tp, ", ep: ", ep, "}")});
}

TEST(LayoutOrder, TensorParallelCostsWhatItCommunicates) {
  const double one = Colocated(1, 8), two = Colocated(2, 8), four = Colocated(4, 8), eight = Colocated(8, 8);
  EXPECT_LT(one, two);
  EXPECT_LT(two, four);
  EXPECT_LT(four, eight);
}

// All_to_all over the network takes longer than over links, and ever longer the more tokens leave their node.
TEST(LayoutOrder, ExpertsAcrossNodesCostTheNetwork) {
  const double inside = Colocated(1, 8), two_nodes = Colocated(1, 16), four_nodes = Colocated(1, 32);
  EXPECT_NEAR(Colocated(1, 4) / inside, 1, 0.05);
  EXPECT_GT(two_nodes, 1.15 * inside);
  EXPECT_GT(four_nodes, two_nodes);
}

// The encoder on a node of its own waits for the language model on the others, or the other way round.
TEST(LayoutOrder, ModulesApartWaitForEachOther) {
  const double apart =
      SecondsOf({"modules.radio_encoder.placement={first_rank: 0, ranks: 8}", "modules.radio_encoder.parallel={tp: 1}",
                 "modules.language.placement={first_rank: 8, ranks: 24}", "modules.language.parallel={tp: 1, ep: 8}"});
  EXPECT_GT(apart, Colocated(1, 8));
}

}  // namespace
}  // namespace planwright
