// V4 and V5 of one microbatch: what a forward saves is taken once by its backward; every layer of a stage runs once, in
// order; every trained slot's gradient is added to once; every statistic is counted once, forwards that are run again
// included.

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/verify/microbatch_calls.h"
#include "planner/verify/role_stage.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

class Frames {
 public:
  Frames(const PlanIndex& index, const MicrobatchCalls& microbatch, std::vector<Violation>& violations)
      : index_(index), microbatch_(microbatch), violations_(violations) {}

  void Check() {
    Saved(0, microbatch_.calls.size());
    for (const auto& [frame, block] : saved_) {
      Fail("V4", absl::StrCat("what ", block->name, " saves in frame ", string(frame), " is never taken"), block);
    }
    for (const string& name : microbatch_.role->modules) {
      if (const Module* module = index_.module(name)) CheckModule(*module);
    }
  }

 private:
  void Fail(const char* rule, string message, const Block* block) {
    const Module* module = block ? index_.module(block->module) : nullptr;
    violations_.push_back(
        {rule, std::move(message), index_.OriginOf(-1, block ? block->origin : microbatch_.role->origin, module)});
  }

  // Calls [first, end) in order: each takes when it starts and saves when it ends.
  void Saved(size_t first, size_t end) {
    for (size_t i = first; i < end; i = static_cast<size_t>(microbatch_.calls[i].end)) {
      const FrameCall& call = microbatch_.calls[i];
      if (!call.block->takes.empty()) Take(call);
      Saved(i + 1, static_cast<size_t>(call.end));
      if (!call.block->saved.empty() && !saved_.emplace(call.frame, call.block).second) {
        Fail("V4", absl::StrCat(call.block->name, " saves into frame ", string(call.frame), " twice"), call.block);
      }
    }
  }

  void Take(const FrameCall& call) {
    auto it = saved_.find(call.frame);
    if (it == saved_.end()) {
      return Fail(
          "V4", absl::StrCat(call.block->name, " takes values of frame ", string(call.frame), " that no forward saved"),
          call.block);
    }
    const Block& forward = *it->second;
    std::set<string_view> have(forward.saved.begin(), forward.saved.end());
    for (const Output& take : call.block->takes) {
      if (!have.erase(take.name)) {
        Fail("V4", absl::StrCat(call.block->name, " takes ", take.name, ", which ", forward.name, " does not save"),
             call.block);
      }
    }
    for (string_view left : have)
      Fail("V4", absl::StrCat(call.block->name, " leaves ", string(left), " of ", forward.name, " behind"), call.block);
    saved_.erase(it);
  }

  struct FrameUse {
    std::vector<const Block*> blocks;      // in order of call
    std::map<string_view, int> reads;      // by slot: how often the forward reads it
    std::map<string_view, int> gradients;  // by slot
    std::map<string, int> statistics;      // by accumulator
  };

  std::map<string_view, FrameUse> UsesOf(const Module& module) const {
    std::map<string_view, FrameUse> uses;
    for (const FrameCall& call : microbatch_.calls) {
      if (call.block->module != module.name) continue;
      FrameUse& use = uses[call.frame];
      const bool forward = use.blocks.empty();
      use.blocks.push_back(call.block);
      for (const Instruction& op : call.block->body) {
        for (const string& slot : op.gradients) ++use.gradients[slot];
        for (const string& slot : op.parameters) use.reads[slot] += forward ? 1 : 0;
        if (op.kind == OpKind::kAccumulateCounts) ++use.statistics["$expert_counts"];
        if (op.kind != OpKind::kAccumulate) continue;
        const string* name = op.FindText("into");
        ++use.statistics[name ? *name : ""];
      }
    }
    return uses;
  }

  void CheckModule(const Module& module) {
    const int stage = StageOf(*microbatch_.role, module);
    const auto uses = UsesOf(module);
    std::set<string_view> here, elsewhere;
    for (const Storage& storage : module.storages) (storage.stage == stage ? here : elsewhere).insert(storage.frame);
    for (string_view frame : here) {
      auto use = uses.find(frame);
      if (use == uses.end()) {
        Fail("V5",
             absl::StrCat("role ", microbatch_.role->name, " never runs ", string(frame), ", which its stage holds"),
             BlockOf(module));
        continue;
      }
      CheckReads(module, stage, frame, use->second);
      CheckGradients(module, stage, frame, use->second);
    }
    for (const auto& [frame, use] : uses) {
      if (!here.contains(frame) && elsewhere.contains(frame)) {
        Fail("V5",
             absl::StrCat("role ", microbatch_.role->name, " runs ", string(frame), ", which another stage holds"),
             use.blocks.front());
      }
    }
    CheckOrder(module, stage, uses);
    CheckStatistics(module, stage, uses);
  }

  const Block* BlockOf(const Module& module) const {
    for (const FrameCall& call : microbatch_.calls) {
      if (call.block->module == module.name) return call.block;
    }
    return nullptr;
  }

  // Each slot has one place in the model. A frozen part, which has no backward to compare with, could else use a tensor
  // for another of its shape.
  void CheckReads(const Module& module, int stage, string_view frame, const FrameUse& use) {
    for (const Storage* storage : index_.StoragesOf(module, frame)) {
      if (storage->stage != stage) continue;
      auto it = use.reads.find(storage->slot);
      const int times = it == use.reads.end() ? 0 : it->second;
      if (times == 1) continue;
      Fail("V5", absl::StrCat(string(frame), ".", storage->slot, " is read ", times, " times by its forward, not once"),
           use.blocks.front());
    }
  }

  void CheckGradients(const Module& module, int stage, string_view frame, const FrameUse& use) {
    for (const Storage* storage : index_.StoragesOf(module, frame)) {
      if (storage->stage != stage || storage->parameters.empty()) continue;
      const bool trained = module.parameters[storage->parameters.front()].trained;
      auto it = use.gradients.find(storage->slot);
      const int times = it == use.gradients.end() ? 0 : it->second;
      if (times == (trained ? 1 : 0)) continue;
      const string slot = absl::StrCat(string(frame), ".", storage->slot);
      if (!trained) {
        Fail("V7", absl::StrCat(slot, " is never stepped, yet a gradient is added to it"), use.blocks.back());
      } else {
        Fail("V5", absl::StrCat("the gradient of ", slot, " is added to ", times, " times a microbatch, not once"),
             use.blocks.back());
      }
    }
  }

  // A frame's first call is its forward, its last one its backward. Layers run forward in order and backward in
  // reverse.
  void CheckOrder(const Module& module, int stage, const std::map<string_view, FrameUse>& uses) {
    std::map<string_view, int> layer_of;
    for (size_t i = 0; i < module.layers.size(); ++i) {
      if (module.layers[i].stage == stage) layer_of[module.layers[i].frame] = static_cast<int>(i);
    }
    std::map<string_view, size_t> seen;
    int last_forward = -1, last_backward = static_cast<int>(module.layers.size());
    for (const FrameCall& call : microbatch_.calls) {
      auto layer = layer_of.find(call.frame);
      if (layer == layer_of.end() || call.block->module != module.name) continue;
      const size_t place = ++seen[call.frame], all = uses.at(call.frame).blocks.size();
      if (place == 1 && layer->second <= last_forward)
        Fail("V5", absl::StrCat("runs ", string(call.frame), " after a later layer"), call.block);
      if (place == 1) last_forward = layer->second;
      if (place == all && all > 1 && layer->second >= last_backward) {
        Fail("V5", absl::StrCat("runs the backward of ", string(call.frame), " after that of an earlier layer"),
             call.block);
      }
      if (place == all && all > 1) last_backward = layer->second;
    }
  }

  void CheckStatistics(const Module& module, int stage, const std::map<string_view, FrameUse>& uses) {
    if (!module.carries_loss) return;
    std::map<string_view, char> kinds;
    for (const LayerSummary& layer : module.layers) kinds[layer.frame] = layer.kind;
    int losses = 0;
    for (const auto& [frame, use] : uses) {
      const bool experts = kinds.contains(frame) && kinds[frame] == 'E';
      for (const char* into : {"$reals.aux", "$integers.routing", "$expert_counts"}) {
        auto it = use.statistics.find(into);
        const int times = it == use.statistics.end() ? 0 : it->second;
        // A frozen model runs as in evaluation: only its choices are recorded.
        const int wanted = experts && (module.trains_backbone || into == string_view("$integers.routing")) ? 1 : 0;
        if (times == wanted) continue;
        Fail("V5",
             absl::StrCat(string(frame), " adds to ", into, " ", times, " times a microbatch, not ",
                          wanted == 1 ? "once" : "never"),
             use.blocks.front());
      }
      auto it = use.statistics.find("$reals.loss");
      if (it != use.statistics.end()) losses += it->second;
      for (const auto& [into, times] : use.statistics) {
        const bool known =
            into == "$reals.aux" || into == "$integers.routing" || into == "$expert_counts" || into == "$reals.loss";
        if (!known)
          Fail("V5", absl::StrCat(string(frame), " adds to ", into, ", which is no sum of a block"),
               use.blocks.front());
      }
    }
    const int wanted = stage == module.grid.pp - 1 ? 1 : 0;
    if (losses == wanted) return;
    Fail("V5",
         absl::StrCat("role ", microbatch_.role->name, " adds a microbatch's loss ", losses, " times, not ",
                      wanted == 1 ? "once" : "never"),
         BlockOf(module));
  }

  const PlanIndex& index_;
  const MicrobatchCalls& microbatch_;
  std::vector<Violation>& violations_;
  std::map<string_view, const Block*> saved_;
};

// Axes along which an accumulated value is the same everywhere must be those over which it is added once.
void CheckOnceOver(const PlanIndex& index, const Block& block, std::vector<Violation>& violations) {
  const Module* module = index.module(block.module);
  if (!module) return;
  std::map<string, const ValueType*> types;
  const auto fail = [&](const Instruction& op, string message) {
    violations.push_back(
        {"V6", absl::StrCat("block ", block.name, " ", message), index.OriginOf(op.origin, block.origin, module)});
  };
  for (const Output& input : block.inputs) types[input.name] = &input.type;
  for (const Output& take : block.takes) types[take.name] = &take.type;
  for (const Instruction& op : block.body) {
    for (const Output& output : op.outputs) types[output.name] = &output.type;
    if (op.kind != OpKind::kAccumulate && op.kind != OpKind::kAccumulateCounts) continue;
    const ValueType* type = op.inputs.empty() ? nullptr : types[op.inputs.front()];
    if (!type) continue;
    std::set<string> once;
    if (const string* axes = op.FindText("once_over")) once = absl::StrSplit(*axes, ',', absl::SkipEmpty());
    string wanted;
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      const string name(AxisName(axis));
      if (module->grid.size(axis) == 1) {
        once.erase(name);
        continue;
      }
      auto held = type->layout.find(axis);
      const bool partial = held != type->layout.end() && held->second.state == AxisLayout::State::kPartial;
      const bool named = once.erase(name) > 0;
      if (!partial) absl::StrAppend(&wanted, wanted.empty() ? "" : ",", name);
      if (partial && named)
        fail(op, absl::StrCat("adds ", op.inputs[0], " once over ", name, ", where every rank has a part of it"));
      if (!partial && !named)
        fail(op, absl::StrCat("adds ", op.inputs[0], " on every rank along ", name, ", where it is the same"));
    }
    for (const string& axis : once)
      fail(op, absl::StrCat("adds ", op.inputs[0], " once over ", axis, ", along which lanes differ"));
    const string* text = op.FindText("once_over");
    if (op.kind == OpKind::kAccumulate && (text ? wanted.empty() || *text != wanted : !wanted.empty())) {
      fail(op, absl::StrCat("adds ", op.inputs[0], " once over other axes than ", wanted));
    }
  }
}

}  // namespace

std::vector<Violation> VerifyFrames(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  for (const MicrobatchCalls& microbatch : microbatches) Frames(index, microbatch, violations).Check();
  for (const Block& block : index.plan().blocks) CheckOnceOver(index, block, violations);
  return violations;
}

}  // namespace planwright
