// Compiled programs, walked by all their ranks over Gloo, with fake arithmetic and data: every collective meets its
// peers with the planned shapes, every value exists when it is read, and replicated weights are equal after the step.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "absl/strings/str_replace.h"
#include "executor/communication/communicator.h"
#include "executor/communication/rendezvous.h"
#include "executor/program/exit_error.h"
#include "executor/program/program_walker.h"
#include "planner/compile/compile.h"
#include "planner/plan/expert_ops.h"
#include "tests/executor/communication/world.h"
#include "tests/support/compiled.h"
#include "tests/support/eventually.h"
#include "tests/support/recipes.h"

namespace planwright::executor {
namespace {

using testing::TinyLayout;

// Image rows of a sample; some samples have none.
int64_t RowsOfSample(int64_t sample) { return sample % 3 == 1 ? 0 : 1 + sample % 4; }

LaneSamples LaneOf(const CallContext& call) {
  const Budget& budget = call.plan->budget;
  const int64_t first = call.step * budget.global_samples + call.microbatch * budget.block_samples;
  const LaneSamples lane = SamplesOfLane(budget.block_samples, call.lanes, call.lane);
  return {first + lane.first, first + lane.end};
}

// The run-time sizes of this lane's microbatch: four patches for each row, one image for each sample that has rows, and
// two class tokens for each image.
int64_t SizeOf(const std::string& symbol, const CallContext& call) {
  int64_t rows = 0, images = 0;
  const LaneSamples lane = LaneOf(call);
  for (int64_t s = lane.first; s < lane.end; ++s) rows += RowsOfSample(s), images += RowsOfSample(s) > 0;
  const std::string what = symbol.substr(symbol.rfind('.') + 1);
  if (what == "image_rows") return rows;
  if (what == "patches") return 4 * rows;
  if (what == "images") return images;
  TORCH_CHECK(what == "tokens", "unknown symbol ", symbol);
  return 4 * rows + 2 * images;
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

at::Tensor Make(const Output& output, const ComputeContext* compute, const CallContext& call) {
  std::vector<int64_t> sizes;
  for (const Dim& dim : output.type.dims) {
    if (const auto* number = std::get_if<int64_t>(&dim)) {
      sizes.push_back(*number);
    } else if (EndsWith(std::get<std::string>(dim), ".expert_rows")) {
      sizes.push_back(compute->inputs[UsesExpertWeights(compute->instruction.kind) ? 0 : 1].size(0));
    } else {
      sizes.push_back(SizeOf(std::get<std::string>(dim), call));
    }
  }
  const bool integer = output.type.dtype == DType::kInt64;
  return at::full(sizes, integer ? 1.0 : 0.01 * (call.rank + 1), at::TensorOptions(ScalarTypeOf(output.type.dtype)));
}

// Sends all of a rank's rows to experts that differ from rank to rank.
at::Tensor Counts(int64_t experts, int64_t rows, int rank) {
  at::Tensor counts = at::full({experts}, 0, at::kLong);
  counts[rank % experts] = rows - rows / 3;
  counts[(rank + 3) % experts] += rows / 3;
  return counts;
}

Tensors StandIn(const ComputeContext& context) {
  Tensors outputs;
  for (const Output& output : context.instruction.outputs) outputs.push_back(Make(output, &context, context.call));
  if (ChoicesOf(context.instruction.kind))
    outputs[2] = Counts(outputs[2].size(0), outputs[1].numel(), context.call.rank);
  // A gradient that differs between ranks, so that a missing reduction shows.
  for (const at::Tensor& gradient : context.gradients) gradient.add_(0.1 * (context.call.rank + 1));
  return outputs;
}

Tensors Data(const Instruction& instruction, const CallContext& call) {
  Tensors outputs;
  for (const Output& output : instruction.outputs) outputs.push_back(Make(output, nullptr, call));
  const LaneSamples lane = LaneOf(call);
  at::Tensor rows = at::full({lane.end - lane.first}, 0, at::kLong);
  for (int64_t s = lane.first; s < lane.end; ++s) rows[s - lane.first] = RowsOfSample(s);
  if (instruction.outputs.back().name.find("sample_rows") != std::string::npos) outputs.back() = rows;
  return outputs;
}

// The sum of a parameter over its dense data-parallel replicas must be the number of replicas times its own value.
void ExpectReplicasAgree(const Plan& plan, Rank& rank, Communicator* world) {
  for (auto& [name, state] : rank.modules) {
    for (const BucketState& bucket : state.buckets()) {
      if (!bucket.parameters.defined()) continue;  // of another stage
      EXPECT_TRUE(bucket.parameters.isfinite().all().item<bool>());
      EXPECT_GT((bucket.parameters - 1).abs().max().item<double>(), 0) << "weights of " << name << " have not moved";
    }
  }
  if (world == nullptr) return;
  for (const Module& module : plan.modules) {
    for (size_t i = 0; i < module.buckets.size(); ++i) {
      const Bucket& bucket = module.buckets[i];
      at::Tensor all = at::full({plan.world_size, bucket.elements}, 0, at::kDouble);
      const auto here = rank.modules.find(module.name);
      if (here != rank.modules.end() && here->second.buckets()[i].parameters.defined())
        all[rank.rank] = here->second.buckets()[i].parameters;
      world->AllReduce(all, Reduce::kSum);
      const Group* group = plan.FindGroup(bucket.reduce_group);
      if (group == nullptr) continue;
      for (const auto& members : MembersOf(plan, *group)) {
        for (int member : members)
          EXPECT_TRUE(all[member].equal(all[members[0]])) << bucket.name << " of rank " << member;
      }
    }
  }
}

int WalkAsRank(const Plan& plan, int number, int port, ComputeHandler handler = StandIn) {
  at::set_num_threads(1);
  Environment environment{.rank = number,
                          .world_size = plan.world_size,
                          .address = "127.0.0.1",
                          .port = port,
                          .nonce = "n",
                          .host = "here",
                          .timeout = testing::kPatience};
  auto store = OpenStore(environment);
  if (!store.ok()) throw std::runtime_error(std::string(store.status().message()));
  std::string folder = ::testing::TempDir() + "rehearsalXXXXXX";
  auto recorder = Recorder::Open(mkdtemp(folder.data()), number, "here");
  Rank rank{
      .plan = plan,
      .role = *plan.RoleOf(number),
      .rank = number,
      .host = "here",
      .device = at::kCPU,
      .communicators = Communicators::Make(plan, number, Backend::kGloo, *store, "n", "127.0.0.1", environment.timeout),
      .step = StepState(plan, at::kCPU)};
  Walk walk{.steps = {.last = 1},
            .handlers = {.compute = [handler](const ComputeBinding&) { return ComputeForm{handler}; },
                         .data = Data,
                         .parameters =
                             [](OpKind, ModuleState& module, StepState&, ManifestNotes&) {
                               for (BucketState& bucket : module.buckets()) {
                                 if (bucket.parameters.defined()) bucket.parameters.fill_(1.0);
                               }
                             }},
            .files = {.recorder = **recorder}};
  ProgramWalker(rank, walk).Run();
  ExpectReplicasAgree(plan, rank, rank.communicators.Find("world", ""));
  WaitForAll(environment, "end", environment.timeout, **store);
  return 0;
}

// Rank 3 dies at once in the backward of the second step.
Tensors Mortal(const ComputeContext& context) {
  if (context.call.rank == 3 && context.call.step == 1 && context.instruction.kind == OpKind::kExpertsGrad)
    raise(SIGKILL);
  return StandIn(context);
}

TEST(PeerLoss, SurvivorsSaySoAtOnceAndWhereTheyWere) {
  const Plan plan = testing::Compiled(testing::TinyRecipe({2, 1, 2, 1, 2, false}));
  const auto statuses = RunWorld(4, [&](int rank, int port) {
    try {
      return WalkAsRank(plan, rank, port, Mortal);
    } catch (const ExitError& error) {
      const std::string message = error.what();
      return message.find("step 2 >") != std::string::npos || message.find("step 2 ") != std::string::npos
                 ? error.status()
                 : 1;
    }
  });
  EXPECT_EQ(statuses, (std::vector<int>{10, 10, 10, 128 + SIGKILL}));
}

struct NamedLayout {
  const char* name;
  TinyLayout layout;
  friend void PrintTo(const NamedLayout& layout, std::ostream* out) { *out << layout.name; }
};

class Rehearsal : public ::testing::TestWithParam<NamedLayout> {};

TEST_P(Rehearsal, AllRanksFinish) {
  const Plan plan = testing::Compiled(testing::TinyRecipe(GetParam().layout));
  EXPECT_EQ(RunWorld(plan.world_size, [&](int rank, int port) { return WalkAsRank(plan, rank, port); }),
            std::vector<int>(plan.world_size, 0));
}

constexpr char kDecoder[] = R"(
name: decoder
cluster: {nodes: 1, gpus_per_node: RANKS, gpu: none}
models:
  tiny:
    kind: decoder
    pattern: "*E*-"
    hidden: 32
    vocabulary: 100
    attention: {heads: 4, head_dim: 8, kv_groups: 2}
    mlp: {ffn: 48}
    moe: {experts: 8, top_k: 2, ffn: 24, normalized: true}
modules:
  language: {model: tiny, placement: {first_rank: 0, ranks: RANKS}, parallel: {AXES}}
batch: {global_samples: 8, micro_samples: 2, sequence_length: 48}
budget: {train_samples: 160, learning_rate: {peak: 1.0e-3, min: 1.0e-3, style: constant}}
precision: {params: fp64}
data: {kind: mock, seed: 1, classes: 4, text_tokens: 8}
)";

// Every stage of a decoder reads positions. Its router is a softmax, and its experts have gates.
TEST(DecoderRehearsal, AllRanksFinish) {
  for (const auto& [ranks, axes] : std::vector<std::pair<int, std::string>>{
           {1, "tp: 1"}, {4, "pp: 2, tp: 2, ep: 2"}, {4, "tp: 4, ep: 2"}, {8, "pp: 2, cp: 2, tp: 2, ep: 4"}}) {
    SCOPED_TRACE(axes);
    Diagnostics problems;
    const std::string text = absl::StrReplaceAll(kDecoder, {{"RANKS", std::to_string(ranks)}, {"AXES", axes}});
    const std::optional<Recipe> recipe = ReadRecipeText(text, "decoder.yaml", problems);
    const Plan plan = testing::Compiled(recipe, problems);
    ASSERT_EQ(plan.world_size, ranks);
    EXPECT_EQ(RunWorld(ranks, [&plan = plan](int rank, int port) { return WalkAsRank(plan, rank, port); }),
              std::vector<int>(static_cast<size_t>(ranks), 0));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Tiny, Rehearsal,
    ::testing::Values(NamedLayout{"one_rank", {}}, NamedLayout{"one_and_one", {1, 1, 1, 1, 1, false}},
                      NamedLayout{"tp2_tp2", {2, 2, 2, 2, 1, false}}, NamedLayout{"ep2", {1, 1, 2, 1, 2, false}},
                      NamedLayout{"fan_in", {4, 1, 2, 2, 1, false, 4}}, NamedLayout{"uneven", {3, 1, 4, 1, 1, false}},
                      NamedLayout{"colocated_4", {4, 2, 4, 1, 2, true}},
                      NamedLayout{"colocated_tp", {4, 1, 4, 2, 1, true}},
                      NamedLayout{"mock_8r_layout", {4, 2, 4, 2, 4, false}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace planwright::executor
