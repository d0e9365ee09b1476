// What the walker costs beside the handlers: it runs a step whose instructions do nothing, with as many calls as a
// large model has. Run by `./dev bench walker`.
#include <ATen/ops/ones.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "executor/program/program_walker.h"

namespace planwright::executor {
namespace {

constexpr int kLayers = 54, kMicrobatches = 6, kInstructions = 32;
int64_t handled = 0;

Tensors Nothing(const ComputeContext& context) {
  ++handled;
  return {context.inputs[0]};
}

// A plan of one rank. Each layer is a chain of instructions, each of which reads the value of the one before and frees
// it. Each layer reads the output of the layer before.
Plan ChainPlan() {
  const ValueType type = {DType::kFp32, {int64_t{1}}, {}, std::nullopt, false};
  Plan plan;
  plan.world_size = 1;
  plan.modules = {{.name = "m"}};
  Block layer{.name = "m.layer", .module = "m", .inputs = {{"v0", type}}};
  for (int i = 0; i < kInstructions; ++i) {
    Instruction op{.kind = OpKind::kSquaredRelu,
                   .inputs = {"v" + std::to_string(i)},
                   .outputs = {{"v" + std::to_string(i + 1), type}}};
    if (i > 0) op.frees = op.inputs;
    layer.body.push_back(std::move(op));
  }
  layer.outputs = {"v" + std::to_string(kInstructions)};
  plan.blocks = {layer};
  Role role{.name = "m.s0", .modules = {"m"}, .ranks = {{0, 1, 1}}};
  for (int m = 0; m < kMicrobatches; ++m) {
    role.step.push_back(
        {.kind = OpKind::kReadTokens, .outputs = {{"x0", type}}, .attributes = {{"module", "m"}}, .microbatch = m});
    for (int l = 0; l < kLayers; ++l) {
      const std::string x = "x" + std::to_string(l), y = "x" + std::to_string(l + 1);
      role.step.push_back({.kind = OpKind::kCall,
                           .inputs = {x},
                           .outputs = {{y, type}},
                           .frees = {x},
                           .block = "m.layer",
                           .frame = "m.layers." + std::to_string(l),
                           .microbatch = m});
    }
    role.step.back().frees.push_back("x" + std::to_string(kLayers));
  }
  plan.roles = {role};
  return plan;
}

// The time in seconds that the walker takes for `steps` steps.
double Seconds(const Plan& plan, Recorder& recorder, int64_t steps) {
  const at::Tensor one = at::ones({1});
  Rank rank{
      .plan = plan, .role = plan.roles[0], .device = at::kCPU, .communicators = {}, .step = StepState(plan, at::kCPU)};
  Walk walk{.steps = {.last = steps - 1},
            .handlers = {.compute = [](const ComputeBinding&) { return ComputeForm{Nothing}; },
                         .data = [one](const Instruction&, const CallContext&) { return Tensors{one}; }},
            .files = {.recorder = recorder}};
  ProgramWalker walker(rank, walk);
  const auto start = std::chrono::steady_clock::now();
  walker.Run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The time in seconds of as many handler calls without a walker.
double HandlerSeconds(const Plan& plan, int64_t calls) {
  const Tensors inputs = {at::ones({1})}, none;
  const CallContext call;
  const Instruction& instruction = plan.blocks[0].body[0];
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < calls; ++i) Nothing({instruction, call, inputs, none, none});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

int Main() {
  std::string folder = (std::filesystem::temp_directory_path() / "walker_benchXXXXXX").string();
  const auto recorder = mkdtemp(folder.data()) ? Recorder::Open(folder, 0, "here") : absl::InternalError("no folder");
  if (!recorder.ok()) return std::fprintf(stderr, "%s\n", std::string(recorder.status().message()).c_str()), 1;
  const Plan plan = ChainPlan();
  constexpr int64_t kSteps = 50;
  Seconds(plan, **recorder, kSteps);
  handled = 0;
  const double all = Seconds(plan, **recorder, kSteps);
  const int64_t calls = handled;
  const double handlers = HandlerSeconds(plan, calls);
  std::printf("%lld instructions: %.3f us each, %.3f us of them in the handler\n", static_cast<long long>(calls),
              all / calls * 1e6, handlers / calls * 1e6);
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace planwright::executor

int main() { return planwright::executor::Main(); }
