// V11 of recompute: programs run the forward of a layer again in the backward pass for exactly the layer kinds that
// Module::recompute names, and keep of them what went in. With the word elementwise, all other layers run again what is
// elementwise, as far as it can be made of what is kept, and nothing else.
//
// Not here: that the second forward is the same as the first (V5, verify_backward.cc), and what it saves (V4,
// verify_saved_values.cc).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

// Checks one module.
class RecomputeCheck {
 public:
  RecomputeCheck(const PlanIndex& index, const Module& module, std::vector<Violation>& violations)
      : index_(index), module_(module), violations_(violations) {
    for (const LayerSummary& layer : module.layers) layers_.emplace(layer.frame, &layer);
  }

  // Module::recompute has words of the module's layer kinds, each once, in the order of its statement. So two plans
  // that recompute the same have the same words. Last comes elementwise.
  void CheckWords() {
    std::vector<string> known;
    if (const ModelStatement* statement = StatementOf(module_)) {
      for (const StatedLayer& layer : statement->layer_kinds) {
        if (Named(layer.word)) known.push_back(layer.word);
      }
    }
    if (Named(kElementwise)) known.emplace_back(kElementwise);
    if (known != module_.recompute)
      Fail("has words in recompute that are not its layer kinds, or not in their order", -1);
  }

  // The forward of this frame is run again exactly if its layer kind is named and it has a backward; or in parts.
  void CheckFrame(const FramePair& pair) {
    const auto layer = layers_.find(pair.frame);
    if (layer == layers_.end() || !pair.backward) {
      if (!pair.again.empty()) Fail("runs the forward of ", pair, " again, but recompute does not name it");
      return;
    }
    if (Named(LayerWordOf(module_, layer->second->kind))) return CheckWhole(pair);
    if (Named(kElementwise)) return CheckElementwise(pair);
    if (!pair.again.empty()) Fail("runs the forward of ", pair, " again, but recompute does not name it");
  }

 private:
  void CheckWhole(const FramePair& pair) {
    // A backward that reads nothing of its forward needs no second one, as where features are added that do not learn.
    if (pair.again.empty() && pair.backward->takes.empty() && pair.forward->saved.empty()) return;
    if (pair.again.empty()) return Fail("does not run the forward of ", pair, " again");
    for (const string& name : pair.forward->saved) {
      if (!HasOutput(pair.forward->inputs, name))
        Fail("keeps values of ", pair, absl::StrCat(" that running it again makes: ", name));
    }
  }

  void CheckElementwise(const FramePair& pair) {
    std::set<string> there(pair.forward->saved.begin(), pair.forward->saved.end());
    for (const Block* again : pair.again) {
      for (const Instruction& op : again->body) {
        if (!InfoOf(op.kind).elementwise)
          Fail("runs ", pair, absl::StrCat(" again with ", string(OpName(op.kind)), ", which is not elementwise"));
        for (const Output& output : op.outputs) there.insert(output.name);
      }
    }
    for (const Instruction& op : pair.forward->body) {
      if (!InfoOf(op.kind).elementwise) continue;
      const bool could =
          std::all_of(op.inputs.begin(), op.inputs.end(), [&](const string& input) { return there.contains(input); });
      for (const Output& output : op.outputs) {
        if (could && Keeps(*pair.forward, output.name))
          Fail("keeps values of ", pair, absl::StrCat(" that running elementwise again makes: ", output.name));
      }
    }
  }

  static bool Keeps(const Block& forward, std::string_view name) {
    return std::find(forward.saved.begin(), forward.saved.end(), name) != forward.saved.end();
  }
  static bool HasOutput(const std::vector<Output>& values, std::string_view name) {
    return std::any_of(values.begin(), values.end(), [&](const Output& value) { return value.name == name; });
  }

  bool Named(std::string_view word) const {
    return std::find(module_.recompute.begin(), module_.recompute.end(), word) != module_.recompute.end();
  }

  void Fail(std::string_view before, const FramePair& pair, std::string_view behind) {
    Fail(absl::StrCat(string(before), string(pair.frame), string(behind)),
         (pair.backward ? pair.backward : pair.forward)->origin);
  }

  void Fail(string what, int origin) {
    if (!reported_.insert(what).second) return;
    violations_.push_back(
        {"V11", absl::StrCat("module ", module_.name, " ", what), index_.OriginOf(origin, -1, &module_)});
  }

  const PlanIndex& index_;
  const Module& module_;
  std::vector<Violation>& violations_;
  std::map<std::string_view, const LayerSummary*> layers_;  // by frame
  std::set<string> reported_;
};

}  // namespace

std::vector<Violation> VerifyRecompute(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  std::map<std::string_view, RecomputeCheck> modules;
  for (const Module& module : index.plan().modules)
    modules.try_emplace(module.name, index, module, violations).first->second.CheckWords();
  for (const FramePair& pair : PairsOf(microbatches)) {
    if (pair.evaluates) continue;  // V5: nothing runs again (verify_layers.cc)
    const auto module = pair.forward ? modules.find(pair.forward->module) : modules.end();
    if (module != modules.end()) module->second.CheckFrame(pair);
  }
  return violations;
}

}  // namespace planwright
