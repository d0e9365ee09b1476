#include "planner/compile/schedule/programs/program_builder.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/blocks/block_builder.h"
#include "planner/compile/schedule/derive/bridge_value.h"
#include "planner/compile/schedule/programs/program_values.h"

namespace planwright {
namespace {

using std::string;

// Whether no row of a colocated bridge leaves its rank: the two layouts deal samples to the same ranks.
bool StaysOnRank(const Bridge& bridge) {
  for (const auto* table : {&bridge.forward, &bridge.backward}) {
    for (const Transfer& transfer : *table) {
      if (transfer.from_rank != transfer.to_rank) return false;
    }
  }
  return true;
}

Output SampleData(const Module& module, int microbatch, const string& what, DType dtype, std::vector<Dim> dims,
                  bool host) {
  return {ValueOf(module, microbatch, what), {dtype, std::move(dims), {}, std::nullopt, host}};
}

}  // namespace

const LoweredModule& ProgramBuilder::LoweredNamed(const string& name) const {
  for (const LoweredModule& lowered : modules_) {
    if (lowered.module->name == name) return lowered;
  }
  Bug("no module " + name);
}

Instruction& ProgramBuilder::Emit(OpKind kind, const Module* module, int bucket) {
  Instruction& instruction = instructions_.emplace_back(Instruction{.kind = kind});
  if (module) instruction.attributes["module"] = module->name;
  if (bucket >= 0) instruction.attributes["bucket"] = int64_t{bucket};
  return instruction;
}

void ProgramBuilder::Append(std::vector<Instruction> instructions) {
  std::move(instructions.begin(), instructions.end(), std::back_inserter(instructions_));
}

const Block& ProgramBuilder::ForwardOf(const LoweredModule& lowered, int stage) const {
  return evaluates_ ? *lowered.stages[stage].evaluate : lowered.stages[stage].forward;
}

void ProgramBuilder::Begin(bool evaluates) {
  instructions_.clear();
  evaluates_ = evaluates;
  if (!evaluates) Emit(OpKind::kBeginStep);
}

void ProgramBuilder::ReadSamples(const LoweredModule& lowered, int stage, int m) {
  lowered.language() ? ReadTokens(lowered, stage, m) : ReadImages(lowered, stage, m);
}

// Every rank of a lane reads the lane's samples itself; nothing of them is sent. Only the first stage needs pixels.
// Later stages need to know which rows belong to which image and sample.
void ProgramBuilder::ReadImages(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const LaneSamples largest = SamplesOfLane(inputs_.budget.block_samples, module.grid.dp, 0);
  const std::vector<Dim> per_image = {module.name + ".images", int64_t{2}};
  const Output grid = SampleData(module, m, "image_grid", DType::kInt64, per_image, true);
  const Output sample_rows = SampleData(module, m, "sample_rows", DType::kInt64, {largest.end - largest.first}, true);
  Instruction& read = Emit(stage > 0 ? OpKind::kReadImageSizes : OpKind::kReadImages, &module);
  read.microbatch = m;
  if (stage > 0) {
    read.outputs = {grid, sample_rows};
    return;
  }
  // The type that the stage declares: with cp it is this rank's part of the lane's patches.
  const Output patches = {ValueOf(module, m, "patches"), InputNamed(ForwardOf(lowered, 0), "patches").type};
  read.outputs = {patches, grid, SampleData(module, m, "image_ids", DType::kInt64, per_image, true), sample_rows};
}

// Every stage has layers that turn by positions; what a stage does not take it does not read.
void ProgramBuilder::ReadPositions(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const std::vector<Output>& given = ForwardOf(lowered, stage).inputs;
  const auto is_positions = [](const Output& input) { return input.name == "positions"; };
  const auto positions = std::find_if(given.begin(), given.end(), is_positions);
  if (positions == given.end()) return;
  Instruction& read = Emit(OpKind::kReadPositions, &module);
  read.microbatch = m;
  read.outputs = {{ValueOf(module, m, "positions"), positions->type}};
}

void ProgramBuilder::ReadTokens(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  ReadPositions(lowered, stage, m);
  const int64_t samples = inputs_.budget.micro_samples, sequence = inputs_.budget.sequence_length;
  const bool documents = inputs_.data.packed_documents, last = stage == lowered.last_stage();
  // The first stage embeds tokens and the last one has the loss. Stages between them need only where documents end, and
  // how many image rows there are, and where, if they take such beside the stream.
  const bool carries = lowered.stages[stage].takes.size() > 1;
  if (stage > 0 && !last && !documents && !carries) return;
  const auto data = [&](const string& what, DType dtype, std::vector<Dim> dims, bool host) {
    return SampleData(module, m, what, dtype, std::move(dims), host);
  };
  Instruction& read = Emit(OpKind::kReadTokens, &module);
  read.microbatch = m;
  read.outputs = {data("tokens", DType::kInt64, {samples, sequence}, false),
                  data("labels", DType::kInt64, {samples, sequence}, false),
                  data("loss_mask", inputs_.dtype, {samples, sequence}, false),
                  data("loss_tokens", DType::kInt64, {int64_t{1}}, false)};
  if (lowered.bridges.empty()) read.outputs.push_back(data("sample_rows", DType::kInt64, {samples}, true));
  for (const Bridge* bridge : lowered.bridges) {
    read.outputs.push_back(data(BridgeValue(inputs_.bridges, *bridge, "sample_rows"), DType::kInt64, {samples}, true));
  }
  if (documents) read.outputs.push_back(data("document_ends", DType::kInt64, {module.name + ".documents"}, true));
  if (last && (evaluates_ || inputs_.sums_by_source())) {
    Instruction& sources = Emit(OpKind::kReadSources, &module);
    sources.microbatch = m;
    sources.outputs = {data("parts", DType::kInt64, {samples}, false), data("counts", DType::kInt64, {samples}, false)};
  }
  if (!last || evaluates_) return;
  // The number of loss tokens divides gradients and loss at the end of the step. All tp and cp ranks of a lane read the
  // same samples, so one of them counts.
  Instruction& count = Emit(OpKind::kAccumulate, &module);
  count.inputs = {ValueOf(module, m, "loss_tokens")};
  count.attributes["into"] = string("$integers.loss_tokens");
  std::vector<const char*> replicated;
  if (module.grid.tp > 1) replicated.push_back("tp");
  if (module.grid.cp > 1) replicated.push_back("cp");
  if (!replicated.empty()) count.attributes["once_over"] = absl::StrJoin(replicated, ",");
}

void ProgramBuilder::Forward(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const Block& block = ForwardOf(lowered, stage);
  Instruction call{.kind = OpKind::kCall};
  for (const Output& input : block.inputs) call.inputs.push_back(ValueOf(module, m, input.name));
  // What leaves the stage: activations for the next one, or an encoder's rows for the bridge.
  for (size_t i = 0; i < block.outputs.size(); ++i) {
    const string& output = block.outputs[i];
    string name = lowered.language() ? output : "rows";
    if (stage < lowered.last_stage()) name = lowered.stages[stage + 1].takes.at(i) + "_out";
    call.outputs.push_back({ValueOf(module, m, name), TypeIn(block, output)});
  }
  call.block = block.name;
  call.frame = absl::StrCat(module.name, ".s", stage);
  call.microbatch = m;
  instructions_.push_back(std::move(call));
}

void ProgramBuilder::Backward(const LoweredModule& lowered, int stage, int m) {
  const Module& module = *lowered.module;
  const StageBlocks& blocks = lowered.stages[stage];
  // With Overlap::reduce the last microbatch has a backward of its own, which reduces gradients on the way.
  const Block& block =
      m + 1 == inputs_.budget.microbatches && blocks.last_backward ? *blocks.last_backward : *blocks.backward;
  Instruction call{.kind = OpKind::kCall};
  for (const Output& input : block.inputs) call.inputs.push_back(ValueOf(module, m, input.name));
  for (size_t i = 0; i < block.outputs.size(); ++i) {
    const string& output = block.outputs[i];
    const string name = stage > 0 ? absl::StrCat("d", blocks.gives_back.at(i), "_in") : output;
    call.outputs.push_back({ValueOf(module, m, name), TypeIn(block, output)});
  }
  call.block = block.name;
  call.frame = absl::StrCat(module.name, ".s", stage);
  call.microbatch = m;
  instructions_.push_back(std::move(call));
}

std::vector<Instruction> ProgramBuilder::DisjointStep(const LoweredModule& lowered, const StageSchedule& schedule,
                                                      bool leads) {
  const int stage = schedule.stage;
  Begin(/*evaluates=*/false);
  const int origin = lowered.bridges.empty() ? lowered.module->origin : lowered.bridges.front()->origin;
  string before;  // the action just done
  for (const string& action : schedule.order) {
    const bool forward = action[0] == 'F';
    const int m = MicrobatchOf(action);
    if (forward) ReadSamples(lowered, stage, m);
    // One exchange between two actions: what the last one made goes out while what the next one needs comes in.
    Transfers transfers;
    if (!before.empty()) AddSends(lowered, stage, before, leads, transfers);
    AddReceives(lowered, stage, action, leads, transfers);
    Exchange(transfers, origin);
    BroadcastReceived(lowered, stage, action, leads);
    forward ? Forward(lowered, stage, m) : Backward(lowered, stage, m);
    if (forward && lowered.language() && stage == lowered.last_stage() && inputs_.sums_by_source())
      AddBySource(lowered, m, "$source");
    before = action;
  }
  Transfers last;
  AddSends(lowered, stage, before, leads, last);
  Exchange(last, origin);
  Tail({&lowered}, stage);
  return Finish();
}

const LoweredModule& ProgramBuilder::ColocatedLanguage() const {
  for (const LoweredModule& lowered : modules_) {
    if (lowered.language()) return lowered;
  }
  Bug("colocated modules without a language model");
}

void ProgramBuilder::Pass(const LoweredModule& from, const LoweredModule& to, const Bridge& bridge, bool backward,
                          const string& given, const string& taken, int m) {
  const Module &source = *from.module, &target = *to.module;
  const string mine = BridgeValue(inputs_.bridges, bridge, "sample_rows");
  const auto rows_of = [&](const LoweredModule& module) {
    return ValueOf(*module.module, m, module.language() ? mine : "sample_rows");
  };
  const Block& block = backward ? *to.stages[0].backward : ForwardOf(to, 0);
  Exchange({{OverBridge(bridge, backward, true, ValueOf(source, m, given), rows_of(from)),
             OverBridge(bridge, backward, false, ValueOf(target, m, taken), rows_of(to))},
            {{ValueOf(target, m, taken), InputNamed(block, taken).type}}},
           bridge.origin);
}

void ProgramBuilder::Rename(const string& from, const string& to) {
  std::replace(instructions_.back().inputs.begin(), instructions_.back().inputs.end(), from, to);
}

void ProgramBuilder::ColocatedForwards(const LoweredModule& language, int m) {
  for (const LoweredModule& lowered : modules_) ReadSamples(lowered, 0, m);
  for (const LoweredModule& lowered : modules_) {
    if (!lowered.language()) Forward(lowered, 0, m);
  }
  for (const Bridge* bridge : language.bridges) {
    if (!StaysOnRank(*bridge)) {
      Pass(LoweredNamed(bridge->from), language, *bridge, false, "rows", BridgeValue(inputs_.bridges, *bridge, "rows"),
           m);
    }
  }
  Forward(language, 0, m);
  for (const Bridge* bridge : language.bridges) {
    if (!StaysOnRank(*bridge)) continue;
    Rename(ValueOf(*language.module, m, BridgeValue(inputs_.bridges, *bridge, "rows")),
           ValueOf(*LoweredNamed(bridge->from).module, m, "rows"));
  }
}

std::vector<Instruction> ProgramBuilder::ColocatedStep() {
  const LoweredModule& language = ColocatedLanguage();
  Begin(/*evaluates=*/false);
  for (int m = 0; m < inputs_.budget.microbatches; ++m) {
    ColocatedForwards(language, m);
    if (inputs_.sums_by_source()) AddBySource(language, m, "$source");
    Backward(language, 0, m);
    for (const Bridge* bridge : language.bridges) {
      const LoweredModule& encoder = LoweredNamed(bridge->from);
      if (!encoder.learns(0)) continue;  // frozen: no gradient goes back
      const string drows = BridgeValue(inputs_.bridges, *bridge, "drows");
      if (!StaysOnRank(*bridge)) Pass(language, encoder, *bridge, true, drows, "drows", m);
      Backward(encoder, 0, m);
      if (StaysOnRank(*bridge)) Rename(ValueOf(*encoder.module, m, "drows"), ValueOf(*language.module, m, drows));
    }
  }
  std::vector<const LoweredModule*> all;
  for (const LoweredModule& lowered : modules_) all.push_back(&lowered);
  Tail(all, 0);
  return Finish();
}

std::vector<Instruction> ProgramBuilder::Finish() {
  // A program has no caller and no frame: every value dies with its last use.
  FillFrees(instructions_, {}, {});
  return std::move(instructions_);
}

std::vector<Instruction> ProgramBuilder::Setup(const std::vector<const LoweredModule*>& modules) {
  instructions_.clear();
  for (const LoweredModule* lowered : modules) {
    Emit(OpKind::kAllocateParameters, lowered->module);
    Emit(inputs_.loads_weights ? OpKind::kLoadParameters : OpKind::kInitializeParameters, lowered->module);
    // Masters are fp32 copies of the weights just written.
    if (lowered->module->trained()) Emit(OpKind::kRefreshMasters, lowered->module);
  }
  return std::move(instructions_);
}

std::vector<Instruction> ProgramBuilder::Resume(const std::vector<const LoweredModule*>& modules) {
  instructions_.clear();
  if (!inputs_.checkpoints) return {};
  for (const LoweredModule* lowered : modules) {
    Emit(OpKind::kAllocateParameters, lowered->module);
    // A checkpoint has adapters alone.
    if (lowered->module->adapted())
      Emit(inputs_.loads_weights ? OpKind::kLoadParameters : OpKind::kInitializeParameters, lowered->module);
    Emit(OpKind::kLoadState, lowered->module);
  }
  Emit(OpKind::kLoadCounters);
  return std::move(instructions_);
}

std::vector<Instruction> ProgramBuilder::Save(const std::vector<const LoweredModule*>& modules) {
  instructions_.clear();
  if (!inputs_.checkpoints) return {};
  // First the counters, which the host waits for: on a GPU their copy would wait behind those of the modules.
  Emit(OpKind::kSaveCounters);
  for (const LoweredModule* lowered : modules) Emit(OpKind::kSaveState, lowered->module);
  Emit(OpKind::kPublishCheckpoint);
  return std::move(instructions_);
}

}  // namespace planwright
