#include "planner/schedule/program_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"
#include "planner/schedule/block_builder.h"
#include "planner/schedule/program_values.h"

namespace planwright {
namespace {

using std::string;

bool StaysOnRank(const Bridge& bridge) {
  for (const auto* table : {&bridge.forward, &bridge.backward}) {
    for (const Transfer& transfer : *table) {
      if (transfer.from_rank != transfer.to_rank) return false;
    }
  }
  return true;
}

}  // namespace

const LoweredModule& ProgramBuilder::LoweredNamed(const string& name) const {
  for (const LoweredModule& lowered : modules_) {
    if (lowered.module->name == name) return lowered;
  }
  Bug("no module " + name);
}

void ProgramBuilder::State(OpKind kind, const Module* module, int bucket) {
  Instruction& instruction = step_.emplace_back(Instruction{.kind = kind});
  if (module) instruction.attributes["module"] = module->name;
  if (bucket >= 0) instruction.attributes["bucket"] = int64_t{bucket};
}

void ProgramBuilder::Append(std::vector<Instruction> instructions) {
  std::move(instructions.begin(), instructions.end(), std::back_inserter(step_));
}

void ProgramBuilder::Begin() {
  step_.clear();
  State(OpKind::kBeginStep, nullptr);
}

void ProgramBuilder::Read(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const int64_t B = plan_.budget.micro_samples, S = plan_.budget.sequence_length;
  const auto data = [&](const string& what, DType dtype, std::vector<Dim> dims, bool host) {
    return Output{ValueOf(module, m, what), {dtype, std::move(dims), {}, std::nullopt, host}};
  };
  const auto read = [&](OpKind kind) -> Instruction& {
    Instruction& instruction = step_.emplace_back(Instruction{.kind = kind});
    instruction.attributes["module"] = module.name;
    instruction.microbatch = m;
    return instruction;
  };
  if (!lowered.language()) {
    const LaneSamples largest = SamplesOfLane(plan_.budget.block_samples, module.grid.dp, 0);
    const Dim images = module.name + ".images";
    const Output grid = data("image_grid", DType::kInt64, {images, int64_t{2}}, true);
    const Output sample_rows = data("sample_rows", DType::kInt64, {largest.end - largest.first}, true);
    if (stage > 0) {
      read(OpKind::kReadImageSizes).outputs = {grid, sample_rows};
      return;
    }
    // Of the stage's own type: with cp they are this rank's part of the lane's.
    const Output patches = {ValueOf(module, m, "patches"), InputNamed(lowered.stages.front().forward, "patches").type};
    read(OpKind::kReadImages).outputs = {patches, grid, data("image_ids", DType::kInt64, {images, int64_t{2}}, true),
                                         sample_rows};
    return;
  }
  // Stages between the first and the last need documents only.
  const bool last = stage == lowered.last_stage();
  if (stage > 0 && !last && !plan_.data.packed_documents) return;
  Instruction& tokens = read(OpKind::kReadTokens);
  tokens.outputs = {data("tokens", DType::kInt64, {B, S}, false), data("labels", DType::kInt64, {B, S}, false),
                    data("loss_mask", dtype_, {B, S}, false), data("loss_tokens", DType::kInt64, {int64_t{1}}, false)};
  if (lowered.bridges.empty()) tokens.outputs.push_back(data("sample_rows", DType::kInt64, {B}, true));
  for (const Bridge* bridge : lowered.bridges) {
    tokens.outputs.push_back(data(BridgeValue(plan_, *bridge, "sample_rows"), DType::kInt64, {B}, true));
  }
  if (plan_.data.packed_documents) {
    tokens.outputs.push_back(data("document_ends", DType::kInt64, {module.name + ".documents"}, true));
  }
  if (!last) return;
  Instruction& count =
      step_.emplace_back(Instruction{.kind = OpKind::kAccumulate, .inputs = {ValueOf(module, m, "loss_tokens")}});
  count.attributes["into"] = string("$integers.loss_tokens");
  count.attributes["module"] = module.name;  // a colocated role has several
  std::vector<string> whole;
  if (module.grid.tp > 1) whole.push_back("tp");
  if (module.grid.cp > 1) whole.push_back("cp");
  if (!whole.empty()) count.attributes["once_over"] = absl::StrCat(whole[0], whole.size() > 1 ? "," + whole[1] : "");
}

void ProgramBuilder::Forward(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const StageBlocks& blocks = lowered.stages[stage];
  const Block& block = blocks.forward;
  Instruction call{.kind = OpKind::kCall};
  for (const Output& input : block.inputs) call.inputs.push_back(ValueOf(module, m, input.name));
  for (const string& output : block.outputs) {
    const string name = stage < lowered.last_stage() ? "x_out" : output;
    call.outputs.push_back({ValueOf(module, m, lowered.language() || stage < lowered.last_stage() ? name : "rows"),
                            TypeMade(block, output)});
  }
  call.block = block.name;
  call.frame = absl::StrCat(module.name, ".s", stage);
  call.microbatch = m;
  step_.push_back(std::move(call));
}

void ProgramBuilder::Backward(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const StageBlocks& blocks = lowered.stages[stage];
  const Block& block =
      m + 1 == plan_.budget.microbatches && blocks.last_backward ? *blocks.last_backward : *blocks.backward;
  Instruction call{.kind = OpKind::kCall};
  for (const Output& input : block.inputs) call.inputs.push_back(ValueOf(module, m, input.name));
  for (const string& output : block.outputs) {
    call.outputs.push_back({ValueOf(module, m, stage > 0 ? "dx_in" : output), TypeMade(block, output)});
  }
  call.block = block.name;
  call.frame = absl::StrCat(module.name, ".s", stage);
  call.microbatch = m;
  step_.push_back(std::move(call));
}

std::vector<Instruction> ProgramBuilder::DisjointStep(const LoweredModule& lowered, const StageSchedule& schedule,
                                                      BridgePart bridge_part) {
  const int stage = schedule.stage;
  const bool leads = bridge_part == BridgePart::kLeader;
  Begin();
  const int origin = lowered.bridges.empty() ? lowered.module->origin : lowered.bridges.front()->origin;
  string before;  // the compute step just done
  for (const string& action : schedule.order) {
    if (action[0] == 'F') Read(lowered, stage, MicrobatchOf(action));
    Transfers transfers;
    if (!before.empty()) Give(lowered, stage, before, leads, transfers);
    Need(lowered, stage, action, leads, transfers);
    Exchange(transfers, origin);
    BroadcastNeeded(lowered, stage, action, leads);
    action[0] == 'F' ? Forward(lowered, stage, MicrobatchOf(action)) : Backward(lowered, stage, MicrobatchOf(action));
    before = action;
  }
  Transfers last;
  Give(lowered, stage, before, leads, last);
  Exchange(last, origin);
  Tail({&lowered}, stage);
  return Finish();
}

std::vector<Instruction> ProgramBuilder::ColocatedStep() {
  std::vector<const LoweredModule*> all, encoders;
  const LoweredModule* language = nullptr;
  for (const LoweredModule& lowered : modules_) {
    all.push_back(&lowered);
    lowered.language() ? void(language = &lowered) : encoders.push_back(&lowered);
  }
  Require(language != nullptr, "colocated modules without a language model");
  Begin();
  const auto pass = [&](const LoweredModule& from, const LoweredModule& to, const Bridge& bridge, bool backward,
                        const string& given, const string& taken, int m) {
    const Module &source = *from.module, &target = *to.module;
    const string mine = BridgeValue(plan_, bridge, "sample_rows");
    const auto rows_of = [&](const LoweredModule& module) {
      return ValueOf(*module.module, m, module.language() ? mine : "sample_rows");
    };
    const Block& block = backward ? *to.stages[0].backward : to.stages[0].forward;
    Exchange({{OverBridge(bridge, backward, true, ValueOf(source, m, given), rows_of(from)),
               OverBridge(bridge, backward, false, ValueOf(target, m, taken), rows_of(to))},
              {{ValueOf(target, m, taken), InputNamed(block, taken).type}}},
             bridge.origin);
  };
  // What stays on its rank is handed on under its own name.
  const auto rename = [&](const string& from, const string& to) {
    std::replace(step_.back().inputs.begin(), step_.back().inputs.end(), from, to);
  };
  for (int m = 0; m < plan_.budget.microbatches; ++m) {
    for (const LoweredModule* lowered : all) Read(*lowered, 0, m);
    for (const LoweredModule* encoder : encoders) Forward(*encoder, 0, m);
    for (const Bridge* bridge : language->bridges) {
      if (!StaysOnRank(*bridge))
        pass(LoweredNamed(bridge->from), *language, *bridge, false, "rows", BridgeValue(plan_, *bridge, "rows"), m);
    }
    Forward(*language, 0, m);
    for (const Bridge* bridge : language->bridges) {
      if (!StaysOnRank(*bridge)) continue;
      rename(ValueOf(*language->module, m, BridgeValue(plan_, *bridge, "rows")),
             ValueOf(*LoweredNamed(bridge->from).module, m, "rows"));
    }
    Backward(*language, 0, m);
    for (const Bridge* bridge : language->bridges) {
      const LoweredModule& encoder = LoweredNamed(bridge->from);
      if (!encoder.learns(0)) continue;
      const string drows = BridgeValue(plan_, *bridge, "drows");
      if (!StaysOnRank(*bridge)) pass(*language, encoder, *bridge, true, drows, "drows", m);
      Backward(encoder, 0, m);
      if (StaysOnRank(*bridge)) rename(ValueOf(*encoder.module, m, "drows"), ValueOf(*language->module, m, drows));
    }
  }
  Tail(all, 0);
  return Finish();
}

std::vector<Instruction> ProgramBuilder::Finish() {
  FillFrees(step_, {}, {});
  return std::move(step_);
}

std::vector<Instruction> ProgramBuilder::Setup(const std::vector<const LoweredModule*>& modules) {
  step_.clear();
  for (const LoweredModule* lowered : modules) {
    State(OpKind::kAllocateParameters, lowered->module);
    State(plan_.initialize ? OpKind::kLoadParameters : OpKind::kInitializeParameters, lowered->module);
    if (lowered->module->trained()) State(OpKind::kRefreshMasters, lowered->module);
  }
  return std::move(step_);
}

}  // namespace planwright
