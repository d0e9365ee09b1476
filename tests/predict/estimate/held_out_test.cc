// The prediction beside runs that it was not made from: the two-GPU columns of docs/gpu.md. The shares of
// planner/predict/rates/rates.cc come from one GPU. The tables stand in docs/step_time.md#held-out, as they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "planner/base/files/file_io.h"
#include "planner/predict/estimate/step_time.h"
#include "tests/support/compiled.h"
#include "tests/support/folders.h"
#include "tests/support/older_passes.h"

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
    {"",
     {"modules.radio_encoder.recompute=block", "modules.language.recompute=mamba"},
     {3909, 799, 386, 189, 147, 2368, 117, 221, 154}},
};

Parts Predicted(const Column& column) {
  const std::string name = column.recipe;
  const Plan plan = testing::OneByOne(testing::CompiledFile(
      InSource("recipes/nemotron_moe_vlm_20l_2g" + (name.empty() ? "" : "_" + name) + ".yaml"), column.overrides));
  const StepTime time = TimeStep(plan);
  const RoleTime& role = time.roles.front();
  // Rows of a trace: with waiting, as those of docs/gpu.md are.
  std::map<std::string, double> by_part;
  Parts parts;
  double all = 0;
  for (const OperationTime& operation : role.operations) {
    const double ms = 1e3 * operation.seconds;
    all += ms;
    by_part[operation.part] += ms;
    if (operation.communication) parts.communication += ms;
  }
  const double older = 1e3 * testing::OlderPasses(plan, time);
  parts.step = 1e3 * time.length + older;
  parts.experts = by_part["language.moe"];
  parts.mamba = by_part["language.mamba"] + by_part["language.mamba.recompute"];
  parts.head = by_part["language.head"];
  parts.attention = by_part["language.attention"];
  parts.encoder = by_part["radio_encoder.layer"] + by_part["radio_encoder.layer.recompute"];
  parts.optimizer = by_part["optimizer"] + older;
  parts.overlap = all - 1e3 * (role.busy + role.communication + role.waiting);
  return parts;
}

void ExpectOnPage(const std::string& table) {
  const absl::StatusOr<std::string> page = ReadWholeFile(InSource("docs/step_time.md"), 1 << 20);
  ASSERT_TRUE(page.ok());
  EXPECT_THAT(*page, ::testing::HasSubstr(table)) << "docs/step_time.md should have this table:\n" << table;
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
  ExpectOnPage(table);
  for (size_t c = 0; c < predicted.size(); ++c)
    EXPECT_NEAR(predicted[c].step / kColumns[c].measured.step, 1, 0.11) << "column " << c;
}

// A decoder on one GPU: docs/gpu.md#how-fast-are-decoders. A row: the kinds of instructions that it has, with their
// backward, and the part in which it counts them; none: any.
struct DecoderRow {
  const char* name;
  std::vector<std::string> kinds, parts;
  double measured = 0;  // milliseconds
};

TEST(HeldOut, ADecoderOfOneGpu) {
  const std::vector<std::string> blocks = {"language.attention", "language.mlp"};
  const std::vector<DecoderRow> rows = {
      {"matrix products of blocks", {"linear", "linear_input_grad", "linear_weight_grad"}, blocks, 394},
      {"attention, forward", {"causal_attention"}, blocks, 62},
      {"attention, backward", {"causal_attention_grad"}, blocks, 191},
      {"head and loss", {}, {"language.head"}, 89},
      {"gated activation", {"gated_silu", "gated_silu_grad"}, blocks, 22},
      {"RMS norms and sums", {"rms_norm", "rms_norm_grad", "add"}, blocks, 25},
      {"norms of heads", {"head_norm", "head_norm_grad"}, blocks, 11},
      {"rotary embedding", {"rope", "rope_grad"}, blocks, 8},
      {"end of the step", {}, {"optimizer"}, 19}};
  const Plan plan = testing::OneByOne(testing::CompiledFile(InSource("recipes/qwen3_1_7b_1g.yaml")));
  const StepTime time = TimeStep(plan);
  const double older = testing::OlderPasses(plan, time);
  const auto has = [](const std::vector<std::string>& list, const std::string& one) {
    return list.empty() || std::find(list.begin(), list.end(), one) != list.end();
  };
  std::string table = "| one H200, in ms | predicted | measured |\n|---|---|---|\n";
  const auto add = [&](const char* name, double is, double was) {
    absl::StrAppendFormat(&table, "| %s | %.0f, %+.0f %% | %.0f |\n", name, is, 100 * (is / was - 1), was);
  };
  add("a step", 1e3 * (time.length + older), 821);
  for (const DecoderRow& row : rows) {
    double ms = 0;
    for (const OperationTime& operation : time.roles.front().operations)
      ms += has(row.kinds, operation.kind) && has(row.parts, operation.part) ? 1e3 * operation.seconds : 0;
    add(row.name, row.parts == std::vector<std::string>{"optimizer"} ? ms + 1e3 * older : ms, row.measured);
  }
  ExpectOnPage(table);
  EXPECT_NEAR(1e3 * (time.length + older) / 821, 1, 0.04);
}

// Which layouts are faster, on 4 nodes of 8 H100: what a person would say, and why. Nothing of it was measured.
struct Layout {
  std::string name;
  std::vector<std::string> overrides;
};

Layout Colocated(int tp, int ep) {
  return {absl::StrCat("on the same ranks, tp ", tp, " ep ", ep),
          {"modules.radio_encoder.placement={first_rank: 0, ranks: 32}",
           "modules.language.placement={first_rank: 0, ranks: 32}",
           absl::StrCat("modules.radio_encoder.parallel={tp: ", tp, "}"),
           absl::StrCat("modules.language.parallel={tp: ", tp, ", ep: ", ep, "}")}};
}

// The encoder on a node of its own.
Layout Apart() {
  return {"8 and 24 ranks, tp 1 ep 8",
          {"modules.radio_encoder.placement={first_rank: 0, ranks: 8}", "modules.radio_encoder.parallel={tp: 1}",
           "modules.language.placement={first_rank: 8, ranks: 24}", "modules.language.parallel={tp: 1, ep: 8}"}};
}

struct Predicted32 {
  double ms = 0;
  double work = 0, communication = 0, waiting = 0;  // of a rank of the language model, shares of the step
  double dispatch = 0;                              // of `communication`: of expert layers, on average over all ranks
  std::string bounds;                               // the largest part of the chain that bounds the step
};

Predicted32 On32Gpus(const Layout& layout) {
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
  overrides.insert(overrides.end(), layout.overrides.begin(), layout.overrides.end());
  const Plan plan = testing::CompiledFile(InSource("recipes/nemotron_moe_vlm_20l_mock_8r.yaml"), overrides);
  const StepTime time = TimeStep(plan);
  const RoleTime& language = time.roles.back();
  Predicted32 predicted = {1e3 * time.length, language.busy / time.length, language.communication / time.length,
                           language.waiting / time.length};
  for (const StepCost& cost : time.costs) {
    if (cost.communication && cost.part.starts_with("language.moe")) predicted.dispatch += cost.seconds / time.length;
  }
  for (size_t i = 0; i < std::min<size_t>(2, time.path.size()); ++i) {
    const PathPart& part = time.path[i];
    absl::StrAppendFormat(&predicted.bounds, "%s%s %s %.0f %%", i > 0 ? ", " : "", part.part, part.kind,
                          100 * part.seconds / time.length);
  }
  return predicted;
}

TEST(LayoutOrder, OfThirtyTwoGpusIsThatOfThePage) {
  std::map<std::string, Predicted32> by_name;
  std::string table =
      "| layout of 32 H100 | a step, ms | works | exposed communication | of it expert layers | waits | largest parts "
      "of what bounds it "
      "|\n|---|--:|--:|--:|--:|--:|---|\n";
  for (const Layout& layout : {Colocated(1, 8), Colocated(2, 8), Colocated(4, 8), Colocated(8, 8), Colocated(1, 4),
                               Colocated(1, 16), Colocated(1, 32), Apart()}) {
    const Predicted32 is = by_name[layout.name] = On32Gpus(layout);
    absl::StrAppendFormat(&table, "| %s | %.0f | %.0f %% | %.0f %% | %.0f %% | %.0f %% | %s |\n", layout.name, is.ms,
                          100 * is.work, 100 * is.communication, 100 * is.dispatch, 100 * is.waiting, is.bounds);
  }
  const auto ms = [&](int tp, int ep) { return by_name.at(Colocated(tp, ep).name).ms; };
  // Tensor parallelism costs what it communicates.
  EXPECT_LT(ms(1, 8), ms(2, 8));
  EXPECT_LT(ms(2, 8), ms(4, 8));
  EXPECT_LT(ms(4, 8), ms(8, 8));
  // All_to_all over the network takes longer than over links, and ever longer the more tokens leave their node.
  EXPECT_NEAR(ms(1, 4) / ms(1, 8), 1, 0.05);
  EXPECT_GT(ms(1, 16), 1.15 * ms(1, 8));
  EXPECT_GT(ms(1, 32), ms(1, 16));
  // The encoder on a node of its own waits for the language model on the others, or the other way round.
  EXPECT_GT(by_name.at(Apart().name).ms, ms(1, 8));
  ExpectOnPage(table);
}

// What one rank with more rows of experts than the others does to the second column: how much of its communication
// waiting could be.
TEST(HeldOut, UnevenRowsOfExpertsAreWaitedForInCommunication) {
  std::string table = "| moe.imbalance | a step | all communication |\n|---|--:|--:|\n";
  double before = 0;
  for (const char* imbalance : {"1", "1.05", "1.1", "1.2"}) {
    Column column = kColumns[0];
    column.overrides = {absl::StrCat("models.nemotron_hybrid_moe_20l.moe.imbalance=", imbalance)};
    const Parts parts = Predicted(column);
    absl::StrAppendFormat(&table, "| %s | %.0f ms | %.0f ms |\n", imbalance, parts.step, parts.communication);
    EXPECT_GT(parts.communication, before);
    before = parts.communication;
  }
  ExpectOnPage(table);
}

}  // namespace
}  // namespace planwright
