#include "planner/schedule/program_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"
#include "planner/schedule/block_builder.h"

namespace planwright {
namespace {

using std::string;

// "language.m0.tokens"
string Value(const Module& module, int microbatch, const string& what) { return absl::StrCat(module.name, ".m", microbatch, ".", what); }

int MicrobatchOf(const string& action) { return std::stoi(action.substr(1)); }

const Output& InputNamed(const Block& block, const string& name) {
  for (const Output& input : block.inputs) {
    if (input.name == name) return input;
  }
  Bug("block " + block.name + " has no input " + name);
}

const ValueType& TypeMade(const Block& block, const string& name) {
  for (const Output& input : block.inputs) {
    if (input.name == name) return input.type;
  }
  for (const Instruction& instruction : block.body) {
    for (const Output& output : instruction.outputs) {
      if (output.name == name) return output.type;
    }
  }
  Bug("block " + block.name + " makes no value " + name);
}

bool StaysOnRank(const Bridge& bridge) {
  for (const auto* table : {&bridge.forward, &bridge.backward}) {
    for (const Transfer& transfer : *table) {
      if (transfer.from_rank != transfer.to_rank) return false;
    }
  }
  return true;
}

ExchangePart ToStage(const Module& module, int shift, bool backward, bool send, string value) {
  return {.backward = backward, .send = send, .value = std::move(value), .group = module.name + ".pp", .shift = shift};
}

ExchangePart OverBridge(const Bridge& bridge, bool backward, bool send, string value, string sample_rows) {
  return {bridge.name, backward, send, std::move(value), std::move(sample_rows)};
}

}  // namespace

std::string BridgeValue(const Plan& plan, const Bridge& bridge, const char* what) {
  const auto into = [&](const Bridge& other) { return other.to == bridge.to; };
  return std::count_if(plan.bridges.begin(), plan.bridges.end(), into) == 1 ? what : absl::StrCat(bridge.from, ".", what);
}

const LoweredModule& ProgramBuilder::LoweredNamed(const string& name) const {
  for (const LoweredModule& lowered : modules_) {
    if (lowered.module->name == name) return lowered;
  }
  Bug("no module " + name);
}

bool ProgramBuilder::CarriesGradient(const Bridge& bridge) const {
  const LoweredModule& encoder = LoweredNamed(bridge.from);
  return encoder.learns(encoder.last_stage());
}

void ProgramBuilder::State(OpKind kind, const Module* module) {
  Instruction& instruction = step_.emplace_back(Instruction{.kind = kind});
  if (module) instruction.attributes["module"] = module->name;
}

void ProgramBuilder::Append(std::vector<Instruction> instructions) {
  std::move(instructions.begin(), instructions.end(), std::back_inserter(step_));
}

void ProgramBuilder::Begin(const std::vector<const LoweredModule*>& modules, int stage) {
  step_.clear();
  State(OpKind::kBeginStep, nullptr);
  if (!overlap_.gather) return;
  for (const LoweredModule* lowered : modules) {
    for (size_t i = 0; i < lowered->module->buckets.size(); ++i) {
      if (lowered->module->buckets[i].stage != stage) continue;
      std::vector<Instruction> gather = GatherBucket(*lowered->module, i, dtype_);
      for (Instruction& instruction : gather) {
        instruction.stream = kGatherStream;
        instruction.signals = {ParametersGathered(*lowered->module, i)};
      }
      Append(std::move(gather));
    }
  }
}

void ProgramBuilder::Read(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const int64_t B = plan_.budget.micro_samples, S = plan_.budget.sequence_length;
  const auto data = [&](const string& what, DType dtype, std::vector<Dim> dims, bool host) {
    return Output{Value(module, m, what), {dtype, std::move(dims), {}, std::nullopt, host}};
  };
  const auto read = [&](OpKind kind) -> Instruction& {
    Instruction& instruction = step_.emplace_back(Instruction{.kind = kind});
    instruction.attributes["module"] = module.name;
    instruction.microbatch = m;
    return instruction;
  };
  if (!lowered.language()) {
    const int64_t block = plan_.budget.global_samples / plan_.budget.microbatches;
    const LaneSamples largest = SamplesOfLane(block, module.grid.dp, 0);
    const Dim images = module.name + ".images";
    const Output grid = data("image_grid", DType::kInt64, {images, int64_t{2}}, true);
    const Output sample_rows = data("sample_rows", DType::kInt64, {largest.end - largest.first}, true);
    if (stage > 0) {
      read(OpKind::kReadImageSizes).outputs = {grid, sample_rows};
      return;
    }
    // Of the stage's own type: with cp they are this rank's part of the lane's.
    const Output patches = {Value(module, m, "patches"), InputNamed(lowered.stages.front().forward, "patches").type};
    read(OpKind::kReadImages).outputs = {patches, grid,
                                         data("image_ids", DType::kInt64, {images, int64_t{2}}, true), sample_rows};
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
  Instruction& count = step_.emplace_back(Instruction{.kind = OpKind::kAccumulate, .inputs = {Value(module, m, "loss_tokens")}});
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
  const Block& block = m == 0 && blocks.first_forward ? *blocks.first_forward : blocks.forward;
  Instruction call{.kind = OpKind::kCall};
  for (const Output& input : block.inputs) call.inputs.push_back(Value(module, m, input.name));
  for (const string& output : block.outputs) {
    const string name = stage < lowered.last_stage() ? "x_out" : output;
    call.outputs.push_back({Value(module, m, lowered.language() || stage < lowered.last_stage() ? name : "rows"), TypeMade(block, output)});
  }
  call.block = block.name;
  call.frame = absl::StrCat(module.name, ".s", stage);
  call.microbatch = m;
  step_.push_back(std::move(call));
}

void ProgramBuilder::Backward(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const StageBlocks& blocks = lowered.stages[stage];
  const Block& block = m + 1 == plan_.budget.microbatches && blocks.last_backward ? *blocks.last_backward : *blocks.backward;
  Instruction call{.kind = OpKind::kCall};
  for (const Output& input : block.inputs) call.inputs.push_back(Value(module, m, input.name));
  for (const string& output : block.outputs) {
    call.outputs.push_back({Value(module, m, stage > 0 ? "dx_in" : output), TypeMade(block, output)});
  }
  call.block = block.name;
  call.frame = absl::StrCat(module.name, ".s", stage);
  call.microbatch = m;
  step_.push_back(std::move(call));
}

void ProgramBuilder::Give(const LoweredModule& lowered, int stage, const string& action, bool leads, Transfers& transfers) {
  const Module& module = *lowered.module;
  const int m = MicrobatchOf(action);
  const bool forward = action[0] == 'F';
  if (forward && stage < lowered.last_stage()) transfers.parts.push_back(ToStage(module, 1, false, true, Value(module, m, "x_out")));
  if (!forward && stage > 0 && GivesGradient(module, lowered.blocks, stage)) {
    transfers.parts.push_back(ToStage(module, -1, true, true, Value(module, m, "dx_in")));
  }
  if (!leads) return;
  for (const Bridge* bridge : lowered.bridges) {
    if (forward && !lowered.language() && stage == lowered.last_stage()) {
      transfers.parts.push_back(OverBridge(*bridge, false, true, Value(module, m, "rows"), Value(module, m, "sample_rows")));
    }
    if (!forward && lowered.language() && stage == 0 && CarriesGradient(*bridge)) {
      transfers.parts.push_back(OverBridge(*bridge, true, true, Value(module, m, BridgeValue(plan_, *bridge, "drows")),
                                           Value(module, m, BridgeValue(plan_, *bridge, "sample_rows"))));
    }
  }
}

void ProgramBuilder::Need(const LoweredModule& lowered, int stage, const string& action, bool leads, Transfers& transfers) {
  const Module& module = *lowered.module;
  const int m = MicrobatchOf(action);
  const bool forward = action[0] == 'F';
  const bool siblings = module.grid.tp * module.grid.cp > 1;
  const auto receive = [&](ExchangePart part, const ValueType& type) {
    transfers.received.push_back({part.value, type});
    transfers.parts.push_back(std::move(part));
  };
  const Block& block = forward ? lowered.stages[stage].forward : *lowered.stages[stage].backward;
  if (forward && stage > 0) receive(ToStage(module, -1, false, false, Value(module, m, "x_in")), InputNamed(block, "x_in").type);
  if (!forward && stage < lowered.last_stage()) {
    receive(ToStage(module, 1, true, false, Value(module, m, "dx_out")), InputNamed(block, "dx_out").type);
  }
  if (!leads) return;
  for (const Bridge* bridge : lowered.bridges) {
    const bool rows = forward && lowered.language() && stage == 0, gradient = !forward && !lowered.language() && stage == lowered.last_stage();
    if (!rows && !gradient) continue;
    const string name = rows ? BridgeValue(plan_, *bridge, "rows") : "drows";
    const string sample_rows = rows ? BridgeValue(plan_, *bridge, "sample_rows") : "sample_rows";
    receive(OverBridge(*bridge, gradient, false, Value(module, m, siblings ? "received." + name : name), Value(module, m, sample_rows)),
            InputNamed(block, name).type);
  }
}

void ProgramBuilder::Exchange(const Transfers& transfers, int origin) {
  if (transfers.parts.empty()) return;
  step_.emplace_back(Instruction{.kind = OpKind::kExchange, .outputs = transfers.received, .parts = transfers.parts}).origin = origin;
}

void ProgramBuilder::BroadcastNeeded(const LoweredModule& lowered, int stage, const string& action, bool leads) {
  const Module& module = *lowered.module;
  const int siblings = module.grid.tp * module.grid.cp, m = MicrobatchOf(action);
  if (siblings == 1) return;
  const bool rows = action[0] == 'F' && lowered.language() && stage == 0;
  const bool gradient = action[0] == 'B' && !lowered.language() && stage == lowered.last_stage();
  if (!rows && !gradient) return;
  const Block& block = rows ? lowered.stages[stage].forward : *lowered.stages[stage].backward;
  for (const Bridge* bridge : lowered.bridges) {
    const string name = rows ? BridgeValue(plan_, *bridge, "rows") : "drows";
    const string sample_rows = rows ? BridgeValue(plan_, *bridge, "sample_rows") : "sample_rows";
    Instruction& broadcast = step_.emplace_back(Instruction{.kind = OpKind::kBroadcast, .inputs = {Value(module, m, sample_rows)}});
    if (leads) broadcast.inputs.push_back(Value(module, m, "received." + name));
    broadcast.outputs = {{Value(module, m, name), InputNamed(block, name).type}};
    broadcast.attributes["root"] = int64_t{rows ? 0 : siblings - 1};  // the first of a destination leads, the last of a source (facts 2.1)
    broadcast.group = module.name + (module.grid.cp > 1 ? ".tp_cp" : ".tp");
  }
}

std::vector<Instruction> ProgramBuilder::DisjointStep(const LoweredModule& lowered, const StageSchedule& schedule, BridgePart bridge_part) {
  const int stage = schedule.stage;
  const bool leads = bridge_part == BridgePart::kLeader;
  Begin({&lowered}, stage);
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
  Begin(all, 0);
  const auto pass = [&](const LoweredModule& from, const LoweredModule& to, const Bridge& bridge, bool backward, const string& given,
                        const string& taken, int m) {
    const Module &source = *from.module, &target = *to.module;
    const string mine = BridgeValue(plan_, bridge, "sample_rows");
    const auto rows_of = [&](const LoweredModule& module) { return Value(*module.module, m, module.language() ? mine : "sample_rows"); };
    const Block& block = backward ? *to.stages[0].backward : to.stages[0].forward;
    Exchange({{OverBridge(bridge, backward, true, Value(source, m, given), rows_of(from)),
               OverBridge(bridge, backward, false, Value(target, m, taken), rows_of(to))},
              {{Value(target, m, taken), InputNamed(block, taken).type}}},
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
      if (!StaysOnRank(*bridge)) pass(LoweredNamed(bridge->from), *language, *bridge, false, "rows", BridgeValue(plan_, *bridge, "rows"), m);
    }
    Forward(*language, 0, m);
    for (const Bridge* bridge : language->bridges) {
      if (!StaysOnRank(*bridge)) continue;
      rename(Value(*language->module, m, BridgeValue(plan_, *bridge, "rows")), Value(*LoweredNamed(bridge->from).module, m, "rows"));
    }
    Backward(*language, 0, m);
    for (const Bridge* bridge : language->bridges) {
      const LoweredModule& encoder = LoweredNamed(bridge->from);
      if (!encoder.learns(0)) continue;
      const string drows = BridgeValue(plan_, *bridge, "drows");
      if (!StaysOnRank(*bridge)) pass(*language, encoder, *bridge, true, drows, "drows", m);
      Backward(encoder, 0, m);
      if (StaysOnRank(*bridge)) rename(Value(*encoder.module, m, "drows"), Value(*language->module, m, drows));
    }
  }
  Tail(all, 0);
  return Finish();
}

void ProgramBuilder::WorldSum(const string& value, DType dtype, int64_t count, const string& group) {
  Instruction& reduce = step_.emplace_back(Instruction{.kind = OpKind::kAllReduce, .inputs = {value}});
  reduce.outputs = {{value, {dtype, {count}, {}, std::nullopt, false}}};
  reduce.attributes["reduce"] = string("sum");
  reduce.group = group;
}

void ProgramBuilder::ReduceGradients(const LoweredModule& lowered, int stage) {
  for (size_t i = 0; i < lowered.module->buckets.size(); ++i) {
    if (lowered.module->buckets[i].stage != stage) continue;
    if (!overlap_.reduce) Append(ReduceBucket(*lowered.module, i, dtype_ == DType::kFp64 ? DType::kFp64 : DType::kFp32));
  }
}

void ProgramBuilder::GatherParameters(const Module& module, int stage) {
  for (size_t i = 0; i < module.buckets.size(); ++i) {
    if (module.buckets[i].stage == stage) Append(GatherBucket(module, i, dtype_));
  }
}

// Facts 5.1 and 5.2: reduce, agree on N, scale, norm over modules, clip, step, gather. World collectives stand in one order on all roles.
void ProgramBuilder::Tail(const std::vector<const LoweredModule*>& modules, int stage) {
  const auto has_buckets = [&](const Module& module) {
    return std::any_of(module.buckets.begin(), module.buckets.end(), [&](const Bucket& bucket) { return bucket.stage == stage; });
  };
  const auto has_experts = [&](const Module& module) {
    return module.trains_backbone && std::any_of(module.layers.begin(), module.layers.end(), [&](const LayerSummary& layer) {
             return layer.kind == 'E' && layer.stage == stage;
           });
  };
  for (const LoweredModule* lowered : modules) ReduceGradients(*lowered, stage);
  const bool alone = plan_.world_size == 1;
  if (!alone) WorldSum("$integers", DType::kInt64, 2, "world");
  for (const LoweredModule* lowered : modules) {
    if (!has_buckets(*lowered->module)) continue;
    State(OpKind::kScaleGradients, lowered->module);
    if (!overlap_.reduce) continue;
    for (size_t i = 0; i < lowered->module->buckets.size(); ++i) {
      const Bucket& bucket = lowered->module->buckets[i];
      if (bucket.stage != stage || (bucket.reduce_group.empty() && bucket.tp_group.empty())) continue;
      step_.back().waits.push_back(GradientsReduced(*lowered->module, i));
    }
  }
  for (const LoweredModule* lowered : modules) {
    if (has_buckets(*lowered->module)) State(OpKind::kSquareNorm, lowered->module);
  }
  if (!alone) WorldSum("$reals", DType::kFp64, 2 + static_cast<int64_t>(plan_.modules.size()), "world");
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    if (has_experts(module) && module.grid.tp * module.grid.cp * module.grid.dp > 1) {
      WorldSum("$expert_counts", DType::kInt64, module.moe_layers * module.experts, module.name + ".tp_dp_cp");
    }
  }
  State(OpKind::kClipAndGate, nullptr);
  for (const LoweredModule* lowered : modules) {
    const Module& module = *lowered->module;
    if (has_buckets(module)) State(OpKind::kAdamW, &module);
    if (has_experts(module)) State(OpKind::kUpdateExpertBias, &module);
    if (!overlap_.gather) GatherParameters(module, stage);
  }
  State(OpKind::kLogStep, nullptr);
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

std::vector<Instruction> ProgramBuilder::Teardown(const std::vector<const LoweredModule*>& modules, int stage) {
  step_.clear();
  if (overlap_.gather) {
    for (const LoweredModule* lowered : modules) GatherParameters(*lowered->module, stage);
  }
  return std::move(step_);
}

}  // namespace planwright
