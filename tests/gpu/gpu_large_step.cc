// The end of a step on a shard of 5e9 elements, more than LibTorch's dot product takes at once: it runs, its norm is
// right, every element moves, and its temporary tensors stay under 256 MB by the allocator's own count. Needs a GPU
// with 100 GB.
#include <ATen/TensorOperators.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>

#include "executor/communication/backends.h"
#include "executor/optimizer/optimizer.h"

namespace planwright::executor {
namespace {

constexpr int64_t kElements = 5'000'000'000, kTemporaries = 256'000'000;

int64_t Allocated(bool peak) {
  const auto stat = c10::cuda::CUDACachingAllocator::getDeviceStats(0).allocated_bytes[0];  // over pools of all sizes
  return peak ? stat.peak : stat.current;
}

bool Tell(bool good, const char* what) {
  std::printf("%s  %s\n", good ? "PASS" : "FAIL", what);
  return good;
}

// Runs one part of the step and prints how much memory it needed.
bool Within(const char* what, const std::function<void()>& work) {
  c10::cuda::device_synchronize();
  c10::cuda::CUDACachingAllocator::resetPeakStats(0);
  const int64_t before = Allocated(false);
  const auto start = std::chrono::steady_clock::now();
  work();
  c10::cuda::device_synchronize();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int64_t temporaries = Allocated(true) - before;
  std::printf("      %s: %.3f s, at most %.1f MB on the way\n", what, seconds, static_cast<double>(temporaries) / 1e6);
  return Tell(temporaries <= kTemporaries, what);
}

Plan PlanOf() {
  Plan plan;
  plan.precision = "fp32";
  plan.world_size = 1;
  Module module;
  module.name = "m";
  module.parameters = {{.name = "m.w", .shape = {kElements}, .decay = true}};
  module.storages = {{.frame = "m.l", .slot = "w", .shape = {kElements}, .parameters = {0}, .bucket = 0, .offset = 0}};
  module.buckets = {{.name = "m.0", .elements = kElements, .dtype = DType::kFp32, .master = DType::kFp32}};
  plan.modules = {module};
  plan.accumulators = {{"$integers", DType::kInt64, 1, {"loss_tokens"}}, {"$reals", DType::kFp64, 1, {"norm.m"}}};
  plan.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 0};
  return plan;
}

int Main() {
  UseCudaDevice(0, false);
  const Plan plan = PlanOf();
  ModuleState module(plan, plan.modules[0], 0, at::Device(at::kCUDA, 0));
  StepState step(plan, at::Device(at::kCUDA, 0));
  step.learning_rate = 0.01, step.weight_decay = 0.1;
  BucketState& bucket = module.buckets()[0];
  bucket.parameters.fill_(1.0);
  // Scaled on the way: 2 everywhere except at the last element, which must count too. The sum of the squares is exact
  // in fp64.
  bucket.gradient_shard.fill_(8.0);
  bucket.gradient_shard[kElements - 1].fill_(4e6);
  step.sum("$integers.loss_tokens").fill_(4);

  const BucketForms& forms = BucketFormsOn(at::kCUDA);
  bool good = Within("square_norm", [&] { forms.square_norm(step, bucket, step.sum("$reals.norm.m")); });
  good &= Within("clip_and_gate", [&] { ClipAndGate(plan, step); });
  good &= Within("adamw", [&] { forms.adamw(plan.optimizer, step, bucket); });
  const double expected = 4.0 * (kElements - 1) + 1e12;
  const double norm = step.norms[1].item<double>();  // over all modules
  std::printf("      norm %.17g, expected %.17g\n", norm, std::sqrt(expected));
  good &= Tell(norm == std::sqrt(expected), "the norm counts every element once");
  // The first step moves each weight by the learning rate against the sign of its gradient, after decay.
  double worst = 0;
  constexpr int64_t kPart = 1 << 26;
  for (int64_t first = 0; first < kElements; first += kPart) {
    const at::Tensor part = bucket.parameters.narrow(0, first, std::min(kPart, kElements - first));
    worst = std::max(worst, std::abs(part.min().item<double>() - 0.989));
    worst = std::max(worst, std::abs(part.max().item<double>() - 0.989));
  }
  std::printf("      furthest parameter from where the formula puts it: %.1e\n", worst);
  good &= Tell(worst < 1e-6, "every parameter made its step");
  return good ? 0 : 1;
}

}  // namespace
}  // namespace planwright::executor

int main() { return planwright::executor::Main(); }
