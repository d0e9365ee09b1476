#include "executor/optimizer/initialize.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>

#include "executor/optimizer/philox_draws.h"
#include "planner/plan/shard_map.h"

namespace planwright::executor {
namespace {

// Replaces random numbers: a function of name and index without a pattern, so that a wrong index shows.
double Mix(const std::string& name, int64_t index) {
  uint64_t x = std::hash<std::string>()(name) + 0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(index + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
}

Draws TestDraws() {
  const DrawSequence sequence = [](const std::string& name, int64_t first, int64_t count, double* out) {
    for (int64_t i = 0; i < count; ++i) out[i] = Mix(name, first + i);
  };
  Draws draws;
  draws.uniform = draws.normal = sequence;
  return draws;
}

// A matrix cut by rows in segments, one cut by columns, three that are joined, experts, a vector that is not cut, a
// buffer, and rows that tp does not divide: of 4 ranks the last has room for two and none of them.
Plan MakePlan(int tp, int ep, const std::string& precision = "fp64") {
  Plan plan;
  plan.precision = precision;
  plan.world_size = std::max(tp, ep);
  Module m{.name = "m"};
  m.grid.tp = tp;
  m.grid.dp = plan.world_size / tp;
  m.grid.ep = ep;
  m.grid.expert_dp = plan.world_size / ep;
  const Init normal = {Init::Kind::kNormal, 0.02, 0};
  m.parameters = {
      {.name = "m.in", .file_name = "f.in", .shape = {20, 3}, .shard_dim = 0, .segments = {8, 8, 4}, .init = normal},
      {.name = "m.out", .file_name = "f.out", .shape = {5, 8}, .shard_dim = 1, .segments = {8}, .init = normal},
      {.name = "m.q", .file_name = "f.q", .shape = {8, 3}, .shard_dim = 0, .init = normal},
      {.name = "m.k", .file_name = "f.k", .shape = {4, 3}, .shard_dim = 0, .init = normal},
      {.name = "m.{expert}.up", .file_name = "f.{expert}.up", .shape = {2, 3}, .experts = 4, .init = normal},
      {.name = "m.norm", .file_name = "f.norm", .shape = {7}, .init = {Init::Kind::kOnes, 0, 0}},
      {.name = "m.bias", .file_name = "f.bias", .shape = {4}, .trained = false},
      {.name = "m.ids",
       .file_name = "f.ids",
       .shape = {5, 3},
       .shard_dim = 0,
       .segments = {5},
       .padded = tp > 1,
       .init = normal},
  };
  const int64_t t = tp, e = 4 / ep;
  m.storages = {{.frame = "m.l", .slot = "in", .shape = {20 / t, 3}, .parameters = {0}},
                {.frame = "m.l", .slot = "out", .shape = {5, 8 / t}, .parameters = {1}},
                {.frame = "m.l", .slot = "qk", .shape = {12 / t, 3}, .parameters = {2, 3}},
                {.frame = "m.l", .slot = "up", .shape = {e, 2, 3}, .parameters = {4}},
                {.frame = "m.l", .slot = "norm", .shape = {7}, .parameters = {5}},
                {.frame = "m.l", .slot = "gate_bias", .shape = {4}, .parameters = {6}},
                {.frame = "m.l", .slot = "ids", .shape = {(5 + t - 1) / t, 3}, .parameters = {7}}};
  plan.modules = {m};
  return plan;
}

using Whole = std::map<std::string, std::vector<double>>;

// The rows behind those of a storage's one parameter.
void ExpectZerosInPadding(const Module& m, size_t storage, int rank, const at::Tensor& held) {
  if (!m.parameters[m.storages[storage].parameters.front()].padded) return;
  int64_t filled = 0;
  for (const PublishedSlice& slice : SlicesOf(m, m.storages[storage], CoordinatesOf(m.grid, rank))) {
    for (const ElementRun& run : slice.runs) filled += run.count;
  }
  const at::Tensor flat = held.reshape({-1});
  EXPECT_EQ(flat.narrow(0, filled, flat.numel() - filled).count_nonzero().item<int64_t>(), 0);
}

// Joins the ranks' storages. Every element must be written, and ranks that write the same element must agree.
Whole Assemble(const Plan& plan, const std::function<void(int rank, ModuleState&)>& fill) {
  const Module& m = plan.modules[0];
  Whole whole;
  for (int rank = 0; rank < plan.world_size; ++rank) {
    ModuleState state(plan, m, rank, at::kCPU);
    fill(rank, state);
    for (size_t i = 0; i < m.storages.size(); ++i) {
      ExpectZerosInPadding(m, i, rank, state.storages()[i].parameter);
      const at::Tensor flat = state.storages()[i].parameter.to(at::kDouble).reshape({-1});
      for (const PublishedSlice& slice : SlicesOf(m, m.storages[i], CoordinatesOf(m.grid, rank))) {
        auto& tensor = whole[slice.file_name];
        tensor.resize(ElementsOf(m.parameters[slice.parameter].shape), std::nan(""));
        for (const ElementRun& run : slice.runs) {
          for (int64_t k = 0; k < run.count; ++k) {
            const double value = flat[run.local + k].item<double>();
            if (!std::isnan(tensor[run.whole + k])) {
              EXPECT_EQ(tensor[run.whole + k], value);
            }
            tensor[run.whole + k] = value;
          }
        }
      }
    }
  }
  for (const auto& [name, values] : whole) {
    for (double value : values) EXPECT_FALSE(std::isnan(value)) << name;
  }
  return whole;
}

Whole Initialized(const Plan& plan) {
  return Assemble(plan, [&](int rank, ModuleState& state) { InitializeParameters(plan, rank, TestDraws(), 2, state); });
}

TEST(Initialize, DoesNotDependOnTheLayout) {
  const Whole one = Initialized(MakePlan(1, 1));
  EXPECT_EQ(one.at("f.in")[7], 0.02 * Mix("m.in", 7));
  EXPECT_EQ(one.at("f.3.up")[2], 0.02 * Mix("m.3.up", 2));
  EXPECT_EQ(one.at("f.norm")[6], 1.0);
  for (auto [tp, ep] : {std::pair{2, 1}, {4, 1}, {1, 2}, {2, 4}, {4, 4}})
    EXPECT_EQ(Initialized(MakePlan(tp, ep)), one) << tp << ep;
}

TEST(Initialize, Bf16IsTheRoundedDouble) {
  const Whole exact = Initialized(MakePlan(1, 1)), narrow = Initialized(MakePlan(2, 2, "bf16"));
  for (const auto& [name, values] : exact) {
    for (size_t i = 0; i < values.size(); ++i)
      EXPECT_NEAR(narrow.at(name)[i], values[i], std::abs(values[i]) / 256) << name;
  }
}

TEST(InitialValues, FollowTheirDistributions) {
  double value = 0;
  const Draws draws = TestDraws();
  const double u = Mix("x", 5);
  InitialValues({Init::Kind::kUniform, -0.5, 0.5}, "x", 5, 1, draws, &value);
  EXPECT_DOUBLE_EQ(value, u - 0.5);
  InitialValues({Init::Kind::kLogUniform, 1, 16}, "x", 5, 1, draws, &value);
  EXPECT_NEAR(std::exp(value), 1 + 15 * u, 1e-12);
  InitialValues({Init::Kind::kDtBias, 1e-3, 0.1}, "x", 5, 1, draws, &value);
  EXPECT_NEAR(std::log1p(std::exp(value)), std::pow(100.0, u) * 1e-3, 1e-12);
}

// One storage of several windows, with a tail, beside those of MakePlan, and every kind of initial value.
Plan LargePlan(const std::string& precision, int tp) {
  Plan plan = MakePlan(tp, 1, precision);
  Module& m = plan.modules[0];
  // Cut, each row is a run of its own, so that runs begin and end anywhere in what a thread takes; whole, all is one.
  const int64_t rows = precision == "bf16" ? 9001 : precision == "fp32" ? 4501 : 2251, columns = tp * 1901;
  m.parameters.push_back({.name = "m.large", .file_name = "f.large", .shape = {rows, columns}, .shard_dim = 1});
  m.parameters.back().init = {Init::Kind::kNormal, 0.02, 0};
  m.storages.push_back({.frame = "m.l",
                        .slot = "large",
                        .shape = {rows, columns / tp},
                        .parameters = {static_cast<int>(m.parameters.size()) - 1}});
  for (const Init::Kind kind : {Init::Kind::kUniform, Init::Kind::kLogUniform, Init::Kind::kDtBias}) {
    const auto index = static_cast<int>(m.parameters.size());
    const std::string name = "kind" + std::to_string(index);
    m.parameters.push_back(
        {.name = "m." + name, .file_name = "f." + name, .shape = {70001}, .init = {kind, 0.001, 0.1}});
    m.storages.push_back({.frame = "m.l", .slot = name, .shape = {70001}, .parameters = {index}});
  }
  return plan;
}

// Every storage as one thread draws it, run by run in fp64, rounded by LibTorch.
std::vector<at::Tensor> PlainlyDrawn(const Plan& plan, const ModuleState& state, const Draws& draws) {
  const Module& m = plan.modules[0];
  std::vector<at::Tensor> drawn;
  for (size_t i = 0; i < m.storages.size(); ++i) {
    const at::Tensor wide = at::empty({state.storages()[i].parameter.numel()}, at::kDouble);
    for (const PublishedSlice& slice : SlicesOf(m, m.storages[i], CoordinatesOf(m.grid, 0))) {
      for (const ElementRun& run : slice.runs) {
        InitialValues(m.parameters[slice.parameter].init, slice.name, run.whole, run.count, draws,
                      wide.mutable_data_ptr<double>() + run.local);
      }
    }
    drawn.push_back(wide.to(state.storages()[i].parameter.scalar_type()));
  }
  return drawn;
}

TEST(Initialize, NoNumberOfThreadsChangesABit) {
  const Draws draws = PhiloxDraws(1234);
  for (const auto& [precision, tp] : {std::pair{"bf16", 1}, {"bf16", 2}, {"fp32", 2}, {"fp64", 2}}) {
    const Plan plan = LargePlan(precision, tp);
    ModuleState state(plan, plan.modules[0], 0, at::kCPU);
    const std::vector<at::Tensor> expected = PlainlyDrawn(plan, state, draws);
    for (const int threads : {1, 2, 3, 7}) {
      for (const SlotTensors& slot : state.storages()) at::Tensor(slot.parameter).fill_(std::nan(""));
      InitializeParameters(plan, 0, draws, threads, state);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(at::equal(state.storages()[i].parameter.view({-1}), expected[i]))
            << precision << ", tp " << tp << ", " << threads << " threads: " << plan.modules[0].storages[i].slot;
      }
    }
  }
}

}  // namespace
}  // namespace planwright::executor
