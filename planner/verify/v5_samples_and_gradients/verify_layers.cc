// V5 of layers: in each microbatch every layer of a stage runs once, forward in order and backward in reverse order.
// Its forward reads each slot once; each trained slot's gradient and each statistic is added once, also where
// forwards are run again. V7 is reported here where a gradient is added to a slot that is never stepped.
//
// Not here: what a layer computes (V11, verify_forward_graphs.cc), whether its backward is right
// (verify_backward.cc), and over which ranks a statistic counts (V6, verify_counted_once.cc).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/plan/statement/expert_counts.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

template <typename Counts, typename Name>
int TimesOf(const Counts& counts, const Name& name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

// The frames that one microbatch runs.
class LayerRuns {
 public:
  LayerRuns(const PlanIndex& index, const MicrobatchCalls& microbatch, std::vector<Violation>& violations)
      : index_(index), microbatch_(microbatch), violations_(violations) {}

  void Check() {
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

  // What the blocks of a frame do in this microbatch, together.
  struct FrameUse {
    std::vector<const Block*> blocks;      // in order of call
    std::map<string_view, int> reads;      // by slot: how often the first call reads it
    std::map<string_view, int> gradients;  // by slot: how often its gradient is added to
    std::map<string, int> statistics;      // by accumulator: how often it is added to
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

  // An evaluation adds nothing to what a step reads, and runs each piece once: nothing is computed again.
  void CheckEvaluation(const std::map<string_view, FrameUse>& uses) {
    for (const auto& [frame, use] : uses) {
      if (use.blocks.size() != 1) {
        Fail("V5", absl::StrCat(string(frame), " runs ", use.blocks.size(), " times in an evaluation, not once"),
             use.blocks.back());
      }
      for (const auto& [into, times] : use.statistics)
        Fail("V5", absl::StrCat(string(frame), " adds to ", into, " in an evaluation"), use.blocks.front());
    }
  }

  void CheckModule(const Module& module) {
    const int stage = StageOf(*microbatch_.role, module);
    const auto uses = UsesOf(module);
    std::set<string_view> here, elsewhere;  // frames that this stage holds, and those of other stages
    for (const Storage& storage : module.storages) (storage.stage == stage ? here : elsewhere).insert(storage.frame);
    for (string_view frame : here) {
      auto use = uses.find(frame);
      if (use == uses.end()) {
        Fail("V5",
             absl::StrCat("role ", microbatch_.role->name, " never runs ", string(frame), ", which its stage ", stage,
                          " holds"),
             BlockOf(module));
        continue;
      }
      CheckReads(module, stage, frame, use->second);
      CheckGradients(module, stage, frame, use->second);
    }
    for (const auto& [frame, use] : uses) {
      if (!here.contains(frame) && elsewhere.contains(frame)) {
        Fail("V5",
             absl::StrCat("role ", microbatch_.role->name, " of stage ", stage, " runs ", string(frame),
                          ", which another stage holds"),
             use.blocks.front());
      }
    }
    CheckOrder(module, stage, uses);
    microbatch_.evaluates ? CheckEvaluation(uses) : CheckStatistics(module, stage, uses);
  }

  // Any block of the module that runs, so that a violation has a line; null: none runs.
  const Block* BlockOf(const Module& module) const {
    for (const FrameCall& call : microbatch_.calls) {
      if (call.block->module == module.name) return call.block;
    }
    return nullptr;
  }

  // Each slot has one place in the model. Without this, a frozen layer could use one tensor in place of another of its
  // shape: it has no backward that would differ.
  void CheckReads(const Module& module, int stage, string_view frame, const FrameUse& use) {
    for (const Storage* storage : index_.StoragesOf(frame)) {
      if (storage->stage != stage) continue;
      const string_view name = storage->SlotIn(frame);
      const int times = TimesOf(use.reads, name);
      if (times == 1) continue;
      Fail("V5", absl::StrCat(string(frame), ".", string(name), " is read ", times, " times by its forward, not once"),
           use.blocks.front());
    }
  }

  void CheckGradients(const Module& module, int stage, string_view frame, const FrameUse& use) {
    for (const Storage* storage : index_.StoragesOf(frame)) {
      if (storage->stage != stage || storage->parameters.empty()) continue;
      const bool trained = module.parameters[storage->parameters.front()].trained && !microbatch_.evaluates;
      const string_view name = storage->SlotIn(frame);
      const int times = TimesOf(use.gradients, name);
      if (times == (trained ? 1 : 0)) continue;
      const string slot = absl::StrCat(string(frame), ".", string(name));
      if (!trained) {
        Fail("V7",
             absl::StrCat("a gradient is added to ", slot,
                          microbatch_.evaluates ? " in an evaluation" : ", which is never stepped"),
             use.blocks.back());
      } else {
        Fail("V5", absl::StrCat("the gradient of ", slot, " is added to ", times, " times a microbatch, not once"),
             use.blocks.back());
      }
    }
  }

  // The first call of a frame is its forward, the last one its backward. Forwards go up the layers, backwards down.
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
      const size_t nth = ++seen[call.frame], all = uses.at(call.frame).blocks.size();
      if (nth == 1 && layer->second <= last_forward)
        Fail("V5", absl::StrCat("role ", microbatch_.role->name, " runs ", string(call.frame), " after a later layer"),
             call.block);
      if (nth == 1) last_forward = layer->second;
      if (nth == all && all > 1 && layer->second >= last_backward) {
        Fail("V5",
             absl::StrCat("role ", microbatch_.role->name, " runs the backward of ", string(call.frame),
                          " after that of an earlier layer"),
             call.block);
      }
      if (nth == all && all > 1) last_backward = layer->second;
    }
  }

  // Sums of the step that blocks add to (docs/training/step.md#metrics). Forwards that run again must not add a second
  // time.
  void CheckStatistics(const Module& module, int stage, const std::map<string_view, FrameUse>& uses) {
    module.carries_loss ? CheckLanguageStatistics(module, stage, uses) : CheckEncoderStatistics(module, uses);
  }

  // An encoder adds the squares of its output, and the number of its elements, once: in its head, which makes them.
  void CheckEncoderStatistics(const Module& module, const std::map<string_view, FrameUse>& uses) {
    const std::set<string> sums = {"$reals.square_sum." + module.name, "$integers.elements." + module.name};
    for (const auto& [frame, use] : uses) {
      std::map<string, int> statistics = use.statistics;
      for (const string& into : sums) statistics.try_emplace(into, 0);
      for (const auto& [into, times] : statistics) {
        const int wanted = frame == module.name + ".head" && sums.contains(into) ? 1 : 0;
        if (times == wanted) continue;
        Fail("V5",
             absl::StrCat(string(frame), " adds to ", into, " ", times, " times a microbatch, not ",
                          wanted == 1 ? "once" : "never"),
             use.blocks.front());
      }
    }
  }

  // The language model adds each expert layer's auxiliary loss, routing fingerprint and, for a router with a bias,
  // counts of tokens, and the last stage's loss.
  void CheckLanguageStatistics(const Module& module, int stage, const std::map<string_view, FrameUse>& uses) {
    const ModelStatement* statement = StatementOf(module);  // null: V11
    std::set<string_view> with_experts, counted;
    for (const LayerSummary& layer : module.layers) {
      if (statement && statement->HasExperts(layer.kind)) with_experts.insert(layer.frame);
      if (statement && CountsExperts(*statement, layer.kind)) counted.insert(layer.frame);
    }
    int losses = 0;
    for (const auto& [frame, use] : uses) {
      const bool experts = with_experts.contains(frame);
      for (const char* into : {"$reals.aux", "$integers.routing", "$expert_counts"}) {
        const int times = TimesOf(use.statistics, into);
        // A frozen model runs as in evaluation. Only the fingerprint of its expert choices is left.
        const bool adds = into == string_view("$expert_counts") ? counted.contains(frame) : experts;
        const int wanted = adds && (module.trains_backbone || into == string_view("$integers.routing")) ? 1 : 0;
        if (times == wanted) continue;
        Fail("V5",
             absl::StrCat(string(frame), " adds to ", into, " ", times, " times a microbatch, not ",
                          wanted == 1 ? "once" : "never"),
             use.blocks.front());
      }
      losses += TimesOf(use.statistics, "$reals.loss");
      for (const auto& [into, times] : use.statistics) {
        const bool known =
            into == "$reals.aux" || into == "$integers.routing" || into == "$expert_counts" || into == "$reals.loss";
        if (!known)
          Fail("V5", absl::StrCat(string(frame), " adds to ", into, ", which no block may add to"), use.blocks.front());
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
};

}  // namespace

std::vector<Violation> VerifyLayers(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  for (const MicrobatchCalls& microbatch : microbatches) LayerRuns(index, microbatch, violations).Check();
  return violations;
}

}  // namespace planwright
