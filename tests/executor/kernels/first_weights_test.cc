// The first weights of a GPU go through staging memory. They must be those of the CPU.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include <cstring>

#include "executor/checkpoint/load_pieces.h"
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

// A tensor of bf16 numbers that follow from their indices.
class NumberedElements : public ElementReader {
 public:
  NumberedElements(std::string key, std::vector<int64_t> shape) : key_(std::move(key)), shape_(std::move(shape)) {}
  std::optional<TensorType> TypeOf(const std::string& key) const override {
    return key == key_ ? std::optional(TensorType{DType::kBf16, shape_}) : std::nullopt;
  }
  absl::Status Read(const std::string&, const std::vector<ElementRun>& runs, std::span<std::byte> to,
                    Numbers) override {
    for (const ElementRun& run : runs) {
      const at::Tensor numbers =
          at::arange(run.whole, run.whole + run.count, at::kLong).remainder(251).to(at::kBFloat16);
      std::memcpy(to.data() + run.local * 2, numbers.const_data_ptr(), static_cast<size_t>(run.count) * 2);
    }
    return absl::OkStatus();
  }
  std::string PlaceOf(const std::string& key) const override { return key; }
  int64_t bytes_read() const override { return 0; }

 private:
  const std::string key_;
  const std::vector<int64_t> shape_;
};

// In parts, by several threads through pinned memory; read, and drawn in fp32.
TEST_F(Kernels, LoadedWeightsAreThoseOfTheCpu) {
  const std::vector<int64_t> shape = {4099, 17001};
  NumberedElements reader("f.a", shape);
  CheckpointPiece piece{"f.a", DType::kBf16, shape, 0, "", {{0, 0, ElementsOf(shape)}}, "m.a", 0};
  const Draws draws = PhiloxDraws(1234);
  for (const bool drawn : {false, true}) {
    ExpectSame([&](const Plan&, int threads, ModuleState& state) {
      const auto draw = [&](const CheckpointPiece&, const ElementRun& run, const at::Tensor& out) {
        DrawElements({Init::Kind::kNormal, 0.02, 0}, "m.a", run.whole, run.count, draws, out);
      };
      for (const absl::Status& status : LoadPieces({{&piece, drawn ? nullptr : &reader}}, draw, threads, state))
        EXPECT_TRUE(status.ok()) << status;
    });
  }
}

}  // namespace
}  // namespace planwright::executor
