// The exchange of a bridge over Gloo: samples dealt unevenly to lanes on both sides, samples without rows, and ranks
// that are on both sides.
#include "executor/program/exchange.h"

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "executor/communication/rendezvous.h"
#include "tests/executor/communication/world.h"
#include "tests/support/eventually.h"

namespace planwright::executor {
namespace {

constexpr int64_t kWidth = 3;

std::vector<Transfer> Table(int64_t samples, const Grid& from, const Grid& to) {
  std::vector<Transfer> table;
  for (int a = 0; a < from.dp; ++a) {
    for (int b = 0; b < to.dp; ++b) {
      const LaneSamples x = SamplesOfLane(samples, from.dp, a), y = SamplesOfLane(samples, to.dp, b);
      const int64_t first = std::max(x.first, y.first), end = std::min(x.end, y.end);
      if (first < end) table.push_back({from.first_rank + a, to.first_rank + b, first, end});
    }
  }
  return table;
}

Plan MakePlan(int encoder_lanes, int language_lanes, int64_t samples, bool colocated) {
  Plan plan;
  plan.world_size = colocated ? encoder_lanes : encoder_lanes + language_lanes;
  plan.budget.global_samples = 2 * samples;
  plan.budget.microbatches = 2;
  plan.budget.block_samples = samples;
  Module encoder{.name = "e"}, language{.name = "l"};
  encoder.grid.dp = encoder_lanes;
  language.grid.dp = language_lanes;
  language.grid.first_rank = colocated ? 0 : encoder_lanes;
  plan.modules = {encoder, language};
  Bridge bridge{.name = "bridge.e.l", .from = "e", .to = "l"};
  bridge.forward = Table(samples, encoder.grid, language.grid);
  bridge.backward = Table(samples, language.grid, encoder.grid);
  plan.bridges = {bridge};
  Group group{.name = "bridge.e.l", .streams = {""}};
  for (int rank = 0; rank < plan.world_size; ++rank) group.ranks.push_back(rank);
  plan.groups = {group};
  return plan;
}

int64_t RowsOfSample(int64_t sample) { return sample % 3 == 1 ? 0 : 2 + sample % 4; }

// Rows of samples [first, end): row i of sample s is s * 100 + i, the same in every column.
at::Tensor RowsOf(LaneSamples lane, double sign) {
  std::vector<double> values;
  for (int64_t s = lane.first; s < lane.end; ++s) {
    for (int64_t i = 0; i < RowsOfSample(s); ++i) values.insert(values.end(), kWidth, sign * (100.0 * s + i));
  }
  at::Tensor rows = at::empty({static_cast<int64_t>(values.size()) / kWidth, kWidth}, at::kDouble);
  std::copy(values.begin(), values.end(), rows.mutable_data_ptr<double>());
  return rows;
}

at::Tensor Counts(LaneSamples lane) {
  at::Tensor counts = at::empty({lane.end - lane.first}, at::kLong);
  for (int64_t s = lane.first; s < lane.end; ++s) counts.mutable_data_ptr<int64_t>()[s - lane.first] = RowsOfSample(s);
  return counts;
}

// Forward and backward at once on every rank: encoder rows go one way, "gradients" (negative rows) the other.
void ExchangeBoth(const Plan& plan, int rank, const Rank& self) {
  const int64_t samples = plan.budget.block_samples;
  Tensors sent, counts;
  Instruction instruction{.kind = OpKind::kExchange};
  std::vector<LaneSamples> lanes;
  for (const Module& module : plan.modules) {
    const bool language = module.name == "l";
    if (!module.grid.contains(rank)) continue;
    const LaneSamples lane = SamplesOfLane(samples, module.grid.dp, rank - module.grid.first_rank);
    instruction.parts.push_back({"bridge.e.l", language, true, module.name + ".out", module.name + ".counts"});
    instruction.parts.push_back({"bridge.e.l", !language, false, module.name + ".in", module.name + ".counts"});
    instruction.outputs.push_back({module.name + ".in", {DType::kFp64, {std::string("rows"), kWidth}}});
    sent.insert(sent.end(), {RowsOf(lane, language ? -1 : 1), at::Tensor()});
    counts.insert(counts.end(), {Counts(lane), Counts(lane)});
    lanes.push_back(lane);
  }
  const Exchange exchange(instruction, self);
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Tensors received = exchange.Run(sent, counts);
    ASSERT_EQ(received.size(), lanes.size());
    for (size_t i = 0; i < lanes.size(); ++i) {
      const double sign = instruction.outputs[i].name == "l.in" ? 1 : -1;
      EXPECT_TRUE(received[i].equal(RowsOf(lanes[i], sign))) << "rank " << rank << " " << instruction.outputs[i].name;
    }
  }
}

void OverGloo(int encoder_lanes, int language_lanes, int64_t samples, bool colocated = false) {
  const Plan plan = MakePlan(encoder_lanes, language_lanes, samples, colocated);
  const auto statuses = RunWorld(plan.world_size, [&](int rank, int port) {
    at::set_num_threads(1);
    Environment environment{.rank = rank,
                            .world_size = plan.world_size,
                            .address = "127.0.0.1",
                            .port = port,
                            .nonce = "n",
                            .timeout = testing::kPatience};
    auto store = OpenStore(environment);
    if (!store.ok()) throw std::runtime_error(std::string(store.status().message()));
    const Role role;
    Rank self{
        .plan = plan,
        .role = role,
        .rank = rank,
        .device = at::kCPU,
        .communicators = Communicators::Make(plan, rank, Backend::kGloo, *store, "n", "127.0.0.1", environment.timeout),
        .step = StepState(plan, at::kCPU)};
    ExchangeBoth(plan, rank, self);
    WaitForAll(environment, "end", environment.timeout, **store);
    return 0;
  });
  EXPECT_EQ(statuses, std::vector<int>(plan.world_size, 0));
}

TEST(Exchange, Equal) { OverGloo(2, 2, 6); }
TEST(Exchange, FanOut) { OverGloo(1, 3, 6); }
TEST(Exchange, FanIn) { OverGloo(3, 1, 6); }
TEST(Exchange, Uneven) { OverGloo(2, 3, 7); }
TEST(Exchange, MoreLanesThanSamples) { OverGloo(3, 1, 2); }
TEST(Exchange, ColocatedSendsToItselfToo) { OverGloo(3, 3, 7, true); }

}  // namespace
}  // namespace planwright::executor
