// The walker on a program small enough to work out by hand: two layers y = w x, two microbatches in flight, one AdamW
// step.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <thread>
#include <tuple>
#include <vector>

#include "executor/log/log.h"
#include "executor/program/exit_error.h"
#include "executor/program/probe_writer.h"
#include "executor/program/program_walker.h"
#include "planner/base/files/exit_status.h"
#include "planner/wire/records/probe_format.h"

namespace planwright::executor {
namespace {

const ValueType kVector = {DType::kFp64, {int64_t{2}}, {}, Layout{}, false};
const ValueType kScalar = {DType::kFp64, {int64_t{1}}, {}, std::nullopt, false};
const ValueType kCount = {DType::kInt64, {int64_t{1}}, {}, std::nullopt, false};

Instruction Op(OpKind kind, std::vector<std::string> inputs, std::vector<Output> outputs, Attributes attributes = {}) {
  return {
      .kind = kind, .inputs = std::move(inputs), .outputs = std::move(outputs), .attributes = std::move(attributes)};
}

Instruction Call(const std::string& block, const std::string& frame, std::vector<std::string> inputs,
                 std::vector<Output> outputs, int microbatch = -1) {
  return {.kind = OpKind::kCall,
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .block = block,
          .frame = frame,
          .microbatch = microbatch};
}

Instruction With(Instruction instruction, std::vector<std::string> parameters, std::vector<std::string> gradients,
                 std::vector<std::string> frees = {}) {
  instruction.parameters = std::move(parameters);
  instruction.gradients = std::move(gradients);
  instruction.frees = std::move(frees);
  return instruction;
}

Plan ToyPlan() {
  Plan plan;
  plan.precision = "fp64";
  plan.world_size = 1;
  plan.budget = {.train_samples = 8,
                 .global_samples = 4,
                 .micro_samples = 2,
                 .sequence_length = 1,
                 .microbatches = 2,
                 .steps = 2,
                 .block_samples = 2};
  plan.budget.learning_rate = {.peak = 0.1, .min = 0.1, .init = 0.1, .decay_samples = 8, .style = "constant"};
  plan.budget.weight_decay = {.start = 0, .end = 0, .style = "constant", .samples = 8};
  plan.optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .clip_grad_norm = 0};
  plan.accumulators = {{"$integers", DType::kInt64, 2, {"loss_tokens", "routing"}},
                       {"$reals", DType::kFp64, 3, {"loss", "aux", "norm.m"}}};
  plan.origins = {{"toy.yaml", 7, 1, "module m"}};
  Module module{.name = "m", .kind = "hybrid_lm", .origin = 0};
  module.layers = {{.kind = 'M', .frame = "m.layers.0"}, {.kind = '-', .frame = "m.layers.1"}};
  for (int i = 0; i < 2; ++i) {
    module.parameters.push_back({.name = "m.w" + std::to_string(i), .shape = {2}});
    module.storages.push_back({.frame = "m.layers." + std::to_string(i),
                               .slot = "w",
                               .shape = {2},
                               .parameters = {i},
                               .bucket = 0,
                               .offset = 2 * i});
  }
  module.buckets = {{.name = "m.0", .elements = 4, .dtype = DType::kFp64, .master = DType::kFp64}};
  plan.modules = {module};

  Block forward{.name = "m.layer.forward",
                .module = "m",
                .inputs = {{"x", kVector}},
                .outputs = {"y"},
                .saved = {"x"},
                .probes = {{"y", "layer{layer}.block{block}.tap{tap}.out"}},
                .origin = 0};
  forward.body = {With(Op(OpKind::kLinear, {"x"}, {{"y", kVector}}), {"w"}, {})};
  Block backward{.name = "m.layer.backward",
                 .module = "m",
                 .inputs = {{"dy", kVector}},
                 .outputs = {"dx"},
                 .takes = {{"x", kVector}}};
  backward.body = {With(Op(OpKind::kLinearWeightGrad, {"dy", "x"}, {}), {}, {"w"}, {"x"}),
                   With(Op(OpKind::kLinearInputGrad, {"dy"}, {{"dx", kVector}}), {"w"}, {})};
  Block stage{.name = "m.s0.forward", .module = "m", .inputs = {{"x", kVector}}};
  stage.body = {Call("m.layer.forward", "m.layers.0", {"x"}, {{"h", kVector}}),
                Call("m.layer.forward", "m.layers.1", {"h"}, {{"y", kVector}}),
                Op(OpKind::kTokenLoss, {"y"}, {{"loss", kScalar}}),
                Op(OpKind::kAccumulate, {"loss"}, {}, {{"into", "$reals.loss"}})};
  Block stage_back{.name = "m.s0.backward", .module = "m", .inputs = {{"dy", kVector}}};
  stage_back.body = {Call("m.layer.backward", "m.layers.1", {"dy"}, {{"dh", kVector}}),
                     Call("m.layer.backward", "m.layers.0", {"dh"}, {{"dx", kVector}})};
  plan.blocks = {forward, backward, stage, stage_back};

  const Attributes of_m = {{"module", "m"}};
  Role role{.name = "m.s0", .modules = {"m"}, .ranks = {{0, 1, 1}}, .origin = 0};
  role.setup = {Op(OpKind::kAllocateParameters, {}, {}, of_m), Op(OpKind::kInitializeParameters, {}, {}, of_m)};
  role.step = {Op(OpKind::kBeginStep, {}, {})};
  for (int m = 0; m < 2; ++m) {  // both forwards before any backward: saved values of two microbatches live at once
    const std::string x = "x" + std::to_string(m), n = "n" + std::to_string(m), one = "one" + std::to_string(m);
    role.step.push_back(Op(OpKind::kReadTokens, {}, {{x, kVector}, {one, kVector}, {n, kCount}}, of_m));
    role.step.back().microbatch = m;
    role.step.push_back(Op(OpKind::kAccumulate, {n}, {}, {{"into", "$integers.loss_tokens"}}));
    role.step.push_back(Call("m.s0.forward", "m.s0", {x}, {}, m));
  }
  for (int m = 0; m < 2; ++m) role.step.push_back(Call("m.s0.backward", "m.s0", {"one" + std::to_string(m)}, {}, m));
  const Attributes of_bucket = {{"module", "m"}, {"bucket", int64_t{0}}};
  role.step.push_back(Op(OpKind::kScaleGradients, {}, {}, of_bucket));
  role.step.push_back(Op(OpKind::kSquareNorm, {}, {}, of_bucket));
  role.step.push_back(Op(OpKind::kClipAndGate, {}, {}));
  role.step.push_back(Op(OpKind::kAdamW, {}, {}, of_bucket));
  role.step.push_back(Op(OpKind::kLogStep, {}, {}));
  plan.roles = {role};
  return plan;
}

Tensors Multiply(const ComputeContext& c) { return {c.inputs[0] * c.parameters[0]}; }
Tensors WeightGradient(const ComputeContext& c) {
  c.gradients[0].add_(c.inputs[0] * c.inputs[1]);
  return {};
}
Tensors Sum(const ComputeContext& c) { return {c.inputs[0].sum().reshape({1})}; }
Tensors Throw(const ComputeContext&) { TORCH_CHECK(false, "planted failure"); }
Tensors Infinity(const ComputeContext& c) { return {at::full({2}, INFINITY, at::kDouble)}; }

ComputeHandler ToyHandler(OpKind kind) {
  switch (kind) {
    case OpKind::kLinear:
    case OpKind::kLinearInputGrad: return Multiply;
    case OpKind::kLinearWeightGrad: return WeightGradient;
    case OpKind::kTokenLoss: return Sum;
    default: return nullptr;
  }
}

ComputeHandler ThrowingHandler(OpKind kind) { return kind == OpKind::kLinearWeightGrad ? Throw : ToyHandler(kind); }
ComputeHandler InfiniteHandler(OpKind kind) { return kind == OpKind::kLinearInputGrad ? Infinity : ToyHandler(kind); }

// x of microbatch m is (m + 1, m + 3); the loss has 2 tokens in each microbatch.
Tensors ToyData(const Instruction&, const CallContext& call) {
  at::Tensor x = at::full({2}, call.microbatch + 1.0, at::kDouble);
  x[1] += 2;
  return {x, at::full({2}, 1.0, at::kDouble), at::full({1}, 2, at::kLong)};
}

class WalkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "walkerXXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    ASSERT_TRUE(StepLog::Open(folder_, log_).ok());
  }

  // Runs `steps` steps; weights start at 2 and 3.
  void Run(const Plan& plan, int64_t steps, ComputeHandler (*handlers)(OpKind) = ToyHandler) {
    RunForms(plan, steps,
             [handlers](const ComputeBinding& binding) { return ComputeForm{handlers(binding.instruction.kind)}; });
  }

  void RunForms(const Plan& plan, int64_t steps, const std::function<ComputeForm(const ComputeBinding&)>& forms) {
    auto recorder = Recorder::Open(folder_, 0, "here");
    ASSERT_TRUE(recorder.ok());
    ProbeWriter probe(folder_ + "/probe", 0);
    Rank rank{.plan = plan,
              .role = plan.roles[0],
              .rank = 0,
              .host = "here",
              .device = at::kCPU,
              .communicators = {},
              .step = StepState(plan, at::kCPU)};
    Walk walk{.steps = {.last = steps - 1},
              .handlers = {.compute = forms,
                           .joined = joined_,
                           .data =
                               [this](const Instruction& instruction, const CallContext& call) {
                                 reads_.emplace_back(&instruction, call.step, call.microbatch);
                                 if (on_read_) on_read_(call);
                                 return ToyData(instruction, call);
                               },
                           .parameters =
                               [](OpKind, ModuleState& module, StepState&, ManifestNotes&) {
                                 module.slot("m.layers.0", "w").parameter.fill_(2.0);
                                 module.slot("m.layers.1", "w").parameter.fill_(3.0);
                               },
                           .data_of_steps =
                               [this](const std::vector<DataRead>& reads, int64_t first, int64_t last) {
                                 EXPECT_TRUE(reads_.empty()) << "before any read";
                                 for (int64_t step = first; step <= last; ++step) {
                                   for (const DataRead& read : reads)
                                     announced_.emplace_back(read.instruction, step, read.call.microbatch);
                                 }
                               },
                           .data_wait = data_wait_},
              .files = {.recorder = **recorder, .log = log_.get(), .probe = probes_ ? &probe : nullptr},
              .fail_point = fail_point_};
    ProgramWalker(rank, walk).Run();
    const at::Tensor weights = rank.modules.at("m").buckets()[0].parameters;
    weights_.assign(weights.const_data_ptr<double>(), weights.const_data_ptr<double>() + 4);
  }

  std::vector<nlohmann::json> Metrics() {
    std::ifstream file(folder_ + "/metrics.jsonl");
    std::vector<nlohmann::json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  std::string folder_;
  std::unique_ptr<StepLog> log_;
  std::function<JoinedHandler(const ComputeBinding&, const ComputeBinding&)> joined_;
  FailPointHook fail_point_;
  std::function<double(int64_t step)> data_wait_;
  std::function<void(const CallContext&)> on_read_;
  bool probes_ = true;
  std::vector<double> weights_;
  std::vector<std::tuple<const Instruction*, int64_t, int>> reads_, announced_;  // steps and microbatches
};

TEST_F(WalkerTest, AnnouncesTheReadsThatItMakes) {
  Run(ToyPlan(), 3);
  EXPECT_EQ(reads_.size(), 6u);
  EXPECT_EQ(reads_, announced_);
}

TEST_F(WalkerTest, WorksOutTheStepByHand) {
  Run(ToyPlan(), 1);
  // Sums of x over microbatches: (1 + 2, 3 + 4) = (3, 7). loss = 6 (3 + 7) / 4 tokens. d/dw0 = 3 x / 4, d/dw1 = 2 x /
  // 4.
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 1u);
  EXPECT_DOUBLE_EQ(metrics[0]["loss"].get<double>(), 15.0);
  const double squares = (9 * (9 + 49) + 4 * (9 + 49)) / 16.0;
  EXPECT_NEAR(metrics[0]["grad_norm"].get<double>(), std::sqrt(squares), 1e-12);
  EXPECT_EQ(metrics[0]["consumed_samples"], 4);
  EXPECT_DOUBLE_EQ(metrics[0]["learning_rate"].get<double>(), 0.1);
  // The first AdamW step is lr times the sign of the gradient, up to eps.
  const double expected[] = {1.9, 1.9, 2.9, 2.9};
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(weights_[i], expected[i], 1e-8);
}

// The host reads what a report writes only when that is written, also behind the last step, when nothing else waits for
// it. Here it comes there while the report is being made.
TEST_F(WalkerTest, WaitsForAReportOnAnotherStream) {
  Plan plan = ToyPlan();
  std::vector<Instruction>& step = plan.roles[0].step;
  step.back().stream = "reports";
  const std::vector<Output> read = {{"later", kVector}, {"later_one", kVector}, {"later_n", kCount}};
  step.push_back(Op(OpKind::kReadTokens, {}, read, {{"module", "m"}}));
  step.back().microbatch = 2;
  std::counting_semaphore begun(0);
  data_wait_ = [&](int64_t) {
    begun.release();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return 0.5;
  };
  on_read_ = [&](const CallContext& call) {
    if (call.microbatch == 2) begun.acquire();
  };
  probes_ = false;  // they wait for all streams
  Run(plan, 3);
  const std::vector<nlohmann::json> metrics = Metrics();
  ASSERT_EQ(metrics.size(), 3u);
  EXPECT_DOUBLE_EQ(metrics[0]["loss"].get<double>(), 15.0);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(metrics[static_cast<size_t>(i)]["step"], i + 1);
}

// Each instruction is asked for its form once, however many calls and steps run it, and by what the plan says of it.
TEST_F(WalkerTest, ChoosesTheFormOfAnInstructionOnce) {
  std::map<const Instruction*, int> asked;
  ASSERT_TRUE(OpenLog(folder_, 0, [] { return absl::OkStatus(); }).ok());
  RunForms(ToyPlan(), 3, [&](const ComputeBinding& binding) {
    ++asked[&binding.instruction];
    EXPECT_EQ(binding.device, at::Device(at::kCPU));
    EXPECT_EQ(binding.module->name, "m");
    EXPECT_EQ(binding.inputs.size(), binding.instruction.inputs.size());
    for (const ValueType* type : binding.inputs) EXPECT_EQ(TypeText(*type), TypeText(kVector));
    EXPECT_EQ(binding.parameters.size(), binding.instruction.parameters.size());
    EXPECT_EQ(binding.learns(), binding.instruction.kind == OpKind::kLinearWeightGrad);
    for (const Tensors* operands : {&binding.parameters, &binding.gradients}) {
      for (const at::Tensor& operand : *operands) EXPECT_EQ(operand.sizes(), at::IntArrayRef({2}));
    }
    using enum ComputeForm::Choice;
    const OpKind kind = binding.instruction.kind;
    return ComputeForm{ToyHandler(kind), kind == OpKind::kLinear            ? kFast
                                         : kind == OpKind::kLinearInputGrad ? kPlain
                                                                            : kOnly};
  });
  EXPECT_EQ(asked.size(), 4u);
  for (const auto& [instruction, times] : asked) EXPECT_EQ(times, 1) << OpName(instruction->kind);
  EXPECT_EQ(Metrics().size(), 3u);
  std::ifstream file(folder_ + "/logs/rank0000.log");
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(log.find("] 4 compute instructions, 1 in their fast form: linear 1, linear_input_grad 0 of 1\n"),
            std::string::npos)
      << log;
}

// The layer's product and a sum behind it, y = w x + x.
Plan WithSums() {
  Plan plan = ToyPlan();
  Block& forward = plan.blocks[0];
  forward.body = {With(Op(OpKind::kLinear, {"x"}, {{"product", kVector}}), {"w"}, {}),
                  With(Op(OpKind::kAdd, {"product", "x"}, {{"y", kVector}}), {}, {}, {"product"})};
  return plan;
}

Tensors TwoTerms(const ComputeContext& c) { return {c.inputs[0] + c.inputs[1]}; }
ComputeHandler SummingHandler(OpKind kind) { return kind == OpKind::kAdd ? TwoTerms : ToyHandler(kind); }

// What is between them is undefined, and nothing else makes it.
Tensors ProductAndSum(const ComputeContext& linear, const ComputeContext& sum) {
  TORCH_CHECK(!sum.inputs[0].defined(), "what is passed was made");
  return {linear.inputs[0] * linear.parameters[0] + sum.inputs[1]};
}

// Two instructions as one pass the fail points of both, one inside the other, and change no number.
TEST_F(WalkerTest, TwoAsOnePassTheFailPointsOfBoth) {
  Run(WithSums(), 2, SummingHandler);
  const std::vector<double> one_by_one = weights_;
  reads_.clear(), announced_.clear();
  joined_ = [](const ComputeBinding&, const ComputeBinding&) { return ProductAndSum; };
  std::vector<std::pair<OpKind, bool>> passed;  // whether after it
  fail_point_ = [&](const FailPoint& point) {
    if (point.kind == OpKind::kLinear || point.kind == OpKind::kAdd)
      passed.emplace_back(*point.kind, point.moment == FailPoint::Moment::kAfter);
  };
  Run(WithSums(), 2, SummingHandler);
  EXPECT_EQ(weights_, one_by_one);
  using enum OpKind;
  const std::vector<std::pair<OpKind, bool>> once = {{kLinear, false}, {kAdd, false}, {kAdd, true}, {kLinear, true}};
  std::vector<std::pair<OpKind, bool>> expected;  // of two layers, in two microbatches of two steps
  for (int i = 0; i < 8; ++i) expected.insert(expected.end(), once.begin(), once.end());
  EXPECT_EQ(passed, expected);
}

// A value that a probe reads is made where the plan makes it: any output of the first of two.
TEST_F(WalkerTest, WhatIsProbedIsNotDoneAsOne) {
  int asked = 0;
  joined_ = [&](const ComputeBinding&, const ComputeBinding&) { return ++asked, ProductAndSum; };
  Plan plan = WithSums();
  for (const char* value : {"product", "scale"}) {
    plan.blocks[0].probes = {{value, "layer{layer}.block{block}.tap{tap}.out"}};
    if (std::string(value) == "scale") {
      plan.blocks[0].body[0].outputs.push_back({"scale", kVector});
      plan.blocks[0].body[1].frees.push_back("scale");
    }
    reads_.clear(), announced_.clear();
    RunForms(plan, 1, [](const ComputeBinding& binding) {
      const OpKind kind = binding.instruction.kind;
      const bool two = kind == OpKind::kLinear && binding.instruction.outputs.size() == 2;
      return ComputeForm{
          two ? [](const ComputeContext& c) -> Tensors { return {c.inputs[0] * c.parameters[0], c.inputs[0] + 1}; }
              : SummingHandler(kind)};
    });
    EXPECT_TRUE(std::filesystem::exists(ProbePartPath(folder_ + "/probe", "values_first", 0)));
  }
  EXPECT_EQ(asked, 0);
}

TEST_F(WalkerTest, WritesProbeParts) {
  Run(ToyPlan(), 2);
  for (const char* kind : {"parameters", "parameters_last", "gradients_first", "gradients_last", "values_first"}) {
    EXPECT_TRUE(std::filesystem::exists(ProbePartPath(folder_ + "/probe", kind, 0))) << kind;
  }
  std::ifstream file(ProbePartPath(folder_ + "/probe", "values_first", 0), std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), 8);
  std::string text(length, ' ');
  file.read(text.data(), static_cast<std::streamsize>(length));
  const auto header = nlohmann::json::parse(text);
  EXPECT_EQ(header["__metadata__"]["m/1/layer0.block0.tap0.out"], "m.layer.forward/y");
  const int64_t begin = header["m/1/layer1.block1.tap0.out"]["data_offsets"][0];
  file.seekg(8 + static_cast<int64_t>(length) + begin);
  double values[2];
  file.read(reinterpret_cast<char*>(values), sizeof values);
  EXPECT_EQ(values[0], 12.0);
  EXPECT_EQ(values[1], 24.0);
}

TEST_F(WalkerTest, NamesRankPathInstructionAndRecipeLine) {
  try {
    Run(ToyPlan(), 1, ThrowingHandler);
    FAIL() << "no error";
  } catch (const ExitError& error) {
    EXPECT_EQ(error.status(), kExitInternal);
    const std::string message = error.what();
    for (const char* part : {"rank 0 on here", "step 1 > m.s0 m.s0.backward > m.layers.1 m.layer.backward 0",
                             "linear_weight_grad dy x", "planted failure", "toy.yaml:7 (module m)"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    }
    EXPECT_EQ(message.find("Exception raised from"), std::string::npos);
  }
}

TEST_F(WalkerTest, SkipsStepsThatAreNotFiniteAndStopsAfterTen) {
  Plan plan = ToyPlan();
  plan.budget.steps = 20;
  ASSERT_TRUE(OpenLog(folder_, 0, [] { return absl::OkStatus(); }).ok());
  try {
    Run(plan, 20, InfiniteHandler);
    FAIL() << "no error";
  } catch (const ExitError& error) {
    EXPECT_EQ(error.status(), kExitNumerics);
    EXPECT_NE(std::string(error.what()).find("in m"), std::string::npos);
  }
  const auto metrics = Metrics();
  ASSERT_EQ(metrics.size(), 10u);
  EXPECT_EQ(metrics[9]["skipped"], true);
  EXPECT_DOUBLE_EQ(metrics[9]["loss"].get<double>(), 15.0);  // the weights have not moved
  std::ifstream file(folder_ + "/logs/rank0000.log");
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  for (const char* what : {"] step 1 is skipped: its gradient norm is not finite (1 in a row)\n",
                           "] step 10 is skipped: its gradient norm is not finite (10 in a row)\n"})
    EXPECT_NE(log.find(what), std::string::npos) << log;
}

TEST_F(WalkerTest, RefusesAValueOfAnotherShape) {
  Plan plan = ToyPlan();
  plan.blocks[0].body[0].outputs[0].type.dims = {int64_t{3}};
  EXPECT_THROW(Run(plan, 1), ExitError);
}

TEST_F(WalkerTest, RefusesBeforeTheFirstStepWhatItCannotRun) {
  Plan plan = ToyPlan();
  plan.blocks[1].body[1].kind = OpKind::kGelu;  // the last block of the step
  try {
    Run(plan, 1);
    FAIL() << "no error";
  } catch (const ExitError& error) {
    const std::string message = error.what();
    for (const char* part : {"rank 0 on here", "step > m.s0 m.s0.backward > m.layers.1 m.layer.backward 1",
                             "no handler of gelu", "toy.yaml:7"}) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
    }
  }
  EXPECT_TRUE(Metrics().empty());
  EXPECT_FALSE(std::filesystem::exists(ProbePartPath(folder_ + "/probe", "values_first", 0)));
}

TEST_F(WalkerTest, RefusesAProgramThatDoesNotLink) {
  Plan plan = ToyPlan();
  plan.blocks[2].body[2].inputs = {"nothing"};
  try {
    Run(plan, 1);
    FAIL() << "no error";
  } catch (const ExitError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("> m.s0 m.s0.forward 2: token_loss: an operand that nothing defines"), std::string::npos)
        << message;
  }
}

TEST_F(WalkerTest, RefusesSavedValuesThatNobodyTakes) {
  Plan plan = ToyPlan();
  plan.blocks[2].saved = {"y"};
  try {
    Run(plan, 1);
    FAIL() << "no error";
  } catch (const ExitError& error) {
    EXPECT_NE(std::string(error.what()).find("m.s0 microbatch 1 y"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace planwright::executor
