// The transfers of a step: what a stage sends and receives around each action of its schedule, between stages and over
// bridges.
#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/compile/schedule/blocks/lower_stage.h"
#include "planner/compile/schedule/derive/bridge_value.h"
#include "planner/compile/schedule/order/pipeline_graph.h"
#include "planner/compile/schedule/programs/program_builder.h"
#include "planner/compile/schedule/programs/program_values.h"

namespace planwright {
namespace {

using std::string;

// To or from the stage `shift` stages on: 1 the next one, -1 the one before.
ExchangePart WithStage(const Module& module, int shift, bool backward, bool send, string value) {
  return {.backward = backward, .send = send, .value = std::move(value), .group = module.name + ".pp", .shift = shift};
}

}  // namespace

// A bridge brings a gradient back only to an encoder that learns.
bool ProgramBuilder::CarriesGradient(const Bridge& bridge) const {
  const LoweredModule& encoder = LoweredNamed(bridge.from);
  return encoder.learns(encoder.last_stage());
}

// The language model receives this many before its first backward. From then on each exchange of its first stage sends
// a gradient and receives rows. An encoder that is shallower than another one has made more rows by then
// (docs/layouts/pipeline.md#stages-of-several-modules) and keeps them until their turn.
int ProgramBuilder::RowsBeforeGradients(const LoweredModule& encoder) const {
  if (evaluates_ || !encoder.learns(encoder.last_stage())) return static_cast<int>(inputs_.budget.microbatches);
  const string& language = encoder.bridges.front()->to;
  for (const StageSchedule& schedule : inputs_.schedule) {
    if (schedule.module == language && schedule.stage == 0) return ForwardsBeforeBackward(schedule.order);
  }
  Bug("no schedule of module " + language);
}

void ProgramBuilder::AddSendsOfRows(const LoweredModule& encoder, int m, Transfers& transfers) {
  if (m >= inputs_.budget.microbatches) return;
  for (const Bridge* bridge : encoder.bridges) {
    transfers.parts.push_back(OverBridge(*bridge, false, true, ValueOf(*encoder.module, m, "rows"),
                                         ValueOf(*encoder.module, m, "sample_rows")));
  }
}

void ProgramBuilder::AddSends(const LoweredModule& lowered, int stage, const string& action, bool leads,
                              Transfers& transfers) {
  const Module& module = *lowered.module;
  const int m = MicrobatchOf(action);
  const bool forward = action[0] == 'F';
  if (forward && stage < lowered.last_stage()) {
    for (const string& name : lowered.stages[stage + 1].takes)
      transfers.parts.push_back(WithStage(module, 1, false, true, ValueOf(module, m, name + "_out")));
  }
  if (!forward) {
    for (const string& name : lowered.stages[stage].gives_back)
      transfers.parts.push_back(WithStage(module, -1, true, true, ValueOf(module, m, absl::StrCat("d", name, "_in"))));
  }
  if (!leads) return;
  if (!lowered.language()) {
    if (forward && m < RowsBeforeGradients(lowered)) AddSendsOfRows(lowered, m, transfers);
    return;
  }
  for (const Bridge* bridge : lowered.bridges) {
    if (forward || !CarriesGradient(*bridge)) continue;
    transfers.parts.push_back(OverBridge(*bridge, true, true,
                                         ValueOf(module, m, BridgeValue(inputs_.bridges, *bridge, "drows")),
                                         ValueOf(module, m, BridgeValue(inputs_.bridges, *bridge, "sample_rows"))));
  }
}

void ProgramBuilder::AddReceives(const LoweredModule& lowered, int stage, const string& action, bool leads,
                                 Transfers& transfers) {
  const Module& module = *lowered.module;
  const int m = MicrobatchOf(action);
  const bool forward = action[0] == 'F';
  // A leader with siblings receives under another name, and the broadcast makes the value that the call reads.
  const bool siblings = module.grid.tp * module.grid.cp > 1;
  const auto receive = [&](ExchangePart part, const ValueType& type) {
    transfers.received.push_back({part.value, type});
    transfers.parts.push_back(std::move(part));
  };
  // The call reads these values, so they have the types of its block's inputs.
  const Block& block = forward ? ForwardOf(lowered, stage) : *lowered.stages[stage].backward;
  const auto receive_from_stage = [&](int shift, const string& name) {
    const ValueType& type = InputNamed(block, name).type;
    ExchangePart part = WithStage(module, shift, !forward, false, ValueOf(module, m, name));
    // No message says a shape: the rows of an encoder follow from the sizes of its images, and those that a language
    // model has of it are counted by sample.
    if (std::holds_alternative<string>(type.dims[0])) {
      const bool counted = lowered.language() && !lowered.bridges.empty();
      part.sizes = ValueOf(
          module, m, counted ? BridgeValue(inputs_.bridges, *lowered.bridges.front(), "sample_rows") : "image_grid");
    }
    receive(std::move(part), type);
  };
  if (forward) {
    for (const string& name : lowered.stages[stage].takes) receive_from_stage(-1, name + "_in");
  } else if (stage < lowered.last_stage()) {
    for (const string& name : lowered.stages[stage + 1].gives_back)
      receive_from_stage(1, absl::StrCat("d", name, "_out"));
  }
  if (!leads) return;
  // Rows that waited go out with the exchange that brings this gradient: the language model does both in one exchange.
  if (!forward && !lowered.language()) AddSendsOfRows(lowered, RowsBeforeGradients(lowered) + m, transfers);
  for (const Bridge* bridge : lowered.bridges) {
    const bool rows = forward && lowered.language() && stage == 0,
               gradient = !forward && !lowered.language() && stage == lowered.last_stage();
    if (!rows && !gradient) continue;
    const string name = rows ? BridgeValue(inputs_.bridges, *bridge, "rows") : "drows";
    const string sample_rows = rows ? BridgeValue(inputs_.bridges, *bridge, "sample_rows") : "sample_rows";
    receive(OverBridge(*bridge, gradient, false, ValueOf(module, m, siblings ? "received." + name : name),
                       ValueOf(module, m, sample_rows)),
            InputNamed(block, name).type);
  }
}

void ProgramBuilder::Exchange(const Transfers& transfers, int origin) {
  if (transfers.parts.empty()) return;
  instructions_
      .emplace_back(Instruction{.kind = OpKind::kExchange, .outputs = transfers.received, .parts = transfers.parts})
      .origin = origin;
}

void ProgramBuilder::BroadcastReceived(const LoweredModule& lowered, int stage, const string& action, bool leads) {
  const Module& module = *lowered.module;
  const int siblings = module.grid.tp * module.grid.cp, m = MicrobatchOf(action);
  if (siblings == 1) return;
  const bool rows = action[0] == 'F' && lowered.language() && stage == 0;
  const bool gradient = action[0] == 'B' && !lowered.language() && stage == lowered.last_stage();
  if (!rows && !gradient) return;
  const Block& block = rows ? ForwardOf(lowered, stage) : *lowered.stages[stage].backward;
  for (const Bridge* bridge : lowered.bridges) {
    const string name = rows ? BridgeValue(inputs_.bridges, *bridge, "rows") : "drows";
    const string sample_rows = rows ? BridgeValue(inputs_.bridges, *bridge, "sample_rows") : "sample_rows";
    Instruction& broadcast = instructions_.emplace_back(
        Instruction{.kind = OpKind::kBroadcast, .inputs = {ValueOf(module, m, sample_rows)}});
    if (leads) broadcast.inputs.push_back(ValueOf(module, m, "received." + name));
    broadcast.outputs = {{ValueOf(module, m, name), InputNamed(block, name).type}};
    // Leaders: the first rank of a lane receives rows, the last one sends them (docs/layouts/bridges.md#leaders).
    broadcast.attributes["root"] = int64_t{rows ? 0 : siblings - 1};
    broadcast.group = module.name + (module.grid.cp > 1 ? ".tp_cp" : ".tp");
  }
}

}  // namespace planwright
