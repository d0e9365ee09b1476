// The first weights of a GPU go through staging memory. They must be those of the CPU.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "executor/optimizer/philox_draws.h"
#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

// Storages in turn: of five windows with a tail, of a few elements, and of two windows.
Plan WeightsPlan() {
  Plan plan;
  plan.precision = "bf16";
  plan.world_size = 1;
  Module m{.name = "m"};
  const Init normal = {Init::Kind::kNormal, 0.02, 0};
  m.parameters = {
      {.name = "m.a", .file_name = "f.a", .shape = {4099, 17001}, .init = normal},
      {.name = "m.b", .file_name = "f.b", .shape = {3}, .init = {Init::Kind::kUniform, -1, 1}},
      {.name = "m.{expert}.c", .file_name = "f.{expert}.c", .shape = {1856, 2688}, .experts = 4, .init = normal},
      {.name = "m.d", .file_name = "f.d", .shape = {7}, .init = {Init::Kind::kOnes, 0, 0}},
  };
  m.storages = {{.frame = "m.l", .slot = "a", .shape = {4099, 17001}, .parameters = {0}},
                {.frame = "m.l", .slot = "b", .shape = {3}, .parameters = {1}},
                {.frame = "m.l", .slot = "c", .shape = {4, 1856, 2688}, .parameters = {2}},
                {.frame = "m.l", .slot = "d", .shape = {7}, .parameters = {3}}};
  plan.modules = {m};
  return plan;
}

template <typename FillModule>
void ExpectSame(const FillModule& fill) {
  const Plan plan = WeightsPlan();
  ModuleState host(plan, plan.modules[0], 0, at::kCPU), device(plan, plan.modules[0], 0, at::Device(at::kCUDA, 0));
  fill(plan, 1, host);
  for (int again = 0; again < 2; ++again) {
    fill(plan, 8, device);
    for (size_t i = 0; i < host.storages().size(); ++i) {
      EXPECT_TRUE(at::equal(device.storages()[i].parameter.cpu(), host.storages()[i].parameter))
          << plan.modules[0].storages[i].slot;
      at::Tensor(device.storages()[i].parameter).zero_();
    }
  }
}

TEST_F(Kernels, DrawnWeightsAreThoseOfTheCpu) {
  ExpectSame([](const Plan& plan, int threads, ModuleState& state) {
    InitializeParameters(plan, 0, PhiloxDraws(1234), threads, state);
  });
}

TEST_F(Kernels, LoadedWeightsAreThoseOfTheCpu) {
  std::map<std::string, SourceTensor> sources;
  for (const auto& [name, shape] : WantedTensors(WeightsPlan())) {
    sources[name] = {shape, [shape = shape, names = static_cast<int64_t>(name.size())] {
                       int64_t elements = 1;
                       for (const int64_t size : shape) elements *= size;
                       return at::arange(elements, at::kInt).remainder(1000 + names).to(at::kBFloat16).view(shape);
                     }};
  }
  ExpectSame(
      [&](const Plan& plan, int threads, ModuleState& state) { LoadParameters(plan, 0, sources, threads, state); });
}

}  // namespace
}  // namespace planwright::executor
