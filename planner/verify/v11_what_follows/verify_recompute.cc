// V11 of recompute: programs run the forward of a layer again in the backward pass for exactly the layer kinds that
// Module::recompute names.
//
// Not here: that the second forward is the same as the first (V5, verify_backward.cc), and what it saves (V4,
// verify_saved_values.cc).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/plan/layer_kinds.h"
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

  // Module::recompute has words of the module's layer kinds, each once, in the order of layer_kinds.def. So two plans
  // that recompute the same have the same words.
  void CheckWords() {
    std::vector<string> known;
    for (const LayerKind& kind : LayerKinds()) {
      const bool of_module = kind.of == (module_.has_images ? LayerKind::Of::kEncoder : LayerKind::Of::kLanguage);
      if (of_module && Named(kind.word)) known.emplace_back(kind.word);
    }
    if (known != module_.recompute)
      Fail("has words in recompute that are not its layer kinds, or not in their order", -1);
  }

  // The forward of this frame is run again exactly if its layer kind is named and it has a backward.
  void CheckFrame(const FramePair& pair) {
    const auto layer = layers_.find(pair.frame);
    const bool wanted = layer != layers_.end() && pair.backward && Named(LayerWord(layer->second->kind));
    if (wanted == !pair.again.empty()) return;
    Fail(absl::StrCat(wanted ? "does not run the forward of " : "runs the forward of ", string(pair.frame),
                      wanted ? " again" : " again, but recompute does not name it"),
         pair.backward->origin);
  }

 private:
  bool Named(std::string_view word) const {
    return std::find(module_.recompute.begin(), module_.recompute.end(), word) != module_.recompute.end();
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
