// V5 of meanings: each value reaches the operand that it is meant for. Tokens and labels have the same type; so have
// the row counts of two bridges, the rows of two encoders, and a value and its gradient. This rule tells them apart
// by where they come from, in every role's program.
//
// Not here: which microbatch a value belongs to (verify_microbatches.cc), and the terms of gradients inside a layer
// (verify_backward.cc).

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "planner/verify/shared/microbatch_calls.h"
#include "planner/verify/shared/plan_index.h"
#include "planner/verify/v5_samples_and_gradients/meanings.h"

namespace planwright {
namespace {

using std::string;

// The step of one role, or its round of an evaluation, followed from reads and exchanges to calls.
class RoleMeanings {
 public:
  RoleMeanings(const PlanIndex& index, const Role& role, const SampleList& list, Meanings& meanings,
               std::vector<Violation>& violations)
      : index_(index), role_(role), list_(list), meanings_(meanings), violations_(violations) {}

  void Check() {
    for (const Instruction& op : list_.Of(role_)) {
      switch (op.kind) {
        case OpKind::kReadTokens:
        case OpKind::kReadPositions:
        case OpKind::kReadImages:
        case OpKind::kReadImageSizes:
        case OpKind::kReadSources: ReadSamples(op); break;
        case OpKind::kAccumulateRows: AddBySource(op); break;
        case OpKind::kCall: CallBlock(op); break;
        case OpKind::kExchange: Exchange(op); break;
        case OpKind::kBroadcast: Broadcast(op); break;
        default: break;
      }
    }
  }

  // The row counts of each broadcast, in order. Siblings receive what their leader sends, so they have the same.
  const std::vector<Meaning>& broadcasts() const { return broadcasts_; }

 private:
  void Fail(const Instruction& op, string message) {
    if (!said_.insert(message).second) return;
    violations_.push_back(
        {"V5", absl::StrCat("role ", role_.name, " ", message), index_.OriginOf(op.origin, role_.origin, nullptr)});
  }

  Meaning Find(const string& value) const {
    auto it = values_.find(value);
    return it == values_.end() ? kNoMeaning : it->second;
  }

  // `value`, which `op` reads, must have this meaning.
  void Require(const Instruction& op, const string& value, Meaning wanted) {
    if (Find(value) == wanted) return;
    Fail(op, absl::StrCat("passes ", value, " to ", string(OpName(op.kind)), " as ", meanings_.TextOf(wanted),
                          ", but it is ", meanings_.TextOf(Find(value))));
  }

  void ReadSamples(const Instruction& op) {
    const string* name = op.FindText("module");
    if (!name) return;  // VerifyMicrobatches
    // In the order of the contract (`does` in ops.def).
    std::vector<Meaning> made;
    if (op.kind == OpKind::kReadTokens) {
      for (const char* what : {"tokens", "labels", "the loss mask", "loss tokens"}) made.push_back(meanings_.Of(what));
      const std::vector<Meaning>& counts = meanings_.RowCountsAt(*name);
      made.insert(made.end(), counts.begin(), counts.end());
      made.push_back(meanings_.Of("the ends of documents"));
    } else if (op.kind == OpKind::kReadPositions) {
      made = {meanings_.Of("the positions")};
    } else if (op.kind == OpKind::kReadSources) {
      made = {meanings_.Of("parts of sums"), meanings_.Of("counts of loss tokens")};
    } else {
      const bool pixels = op.kind == OpKind::kReadImages;
      if (pixels) made.push_back(meanings_.Of("patches"));
      made.push_back(meanings_.Of("image sizes"));
      if (pixels) made.push_back(meanings_.Of("image numbers"));
      made.push_back(meanings_.RowCounts(*name));
    }
    for (size_t i = 0; i < std::min(made.size(), op.outputs.size()); ++i) values_[op.outputs[i].name] = made[i];
  }

  // The losses of tokens are what the last stage of the language model makes. Which sum is which is said by its name.
  void AddBySource(const Instruction& op) {
    const string* into = op.FindText("into");
    const string* module = op.FindText("module");
    if (op.inputs.size() != 2 || !into || !module) return;  // V4
    Require(op, op.inputs[0],
            into->ends_with("_losses") ? meanings_.MadeBy(*module) : meanings_.Of("counts of loss tokens"));
    Require(op, op.inputs[1], meanings_.Of("parts of sums"));
  }

  // The first call of a frame in a microbatch is its forward, the next its backward. The forward makes what its module
  // makes; the backward is given the gradient of that, and makes the gradients of what the forward was given.
  void CallBlock(const Instruction& op) {
    const Block* block = index_.block(op.block);
    if (!block) return;  // V4
    std::vector<Meaning> given;
    for (const string& input : op.inputs) given.push_back(Find(input));
    meanings_.Run(*block, op.frame, given, microbatches_[op.microbatch]);
    auto [forward, first] = forward_inputs_.try_emplace({op.frame, op.microbatch});
    const Meaning own = meanings_.MadeBy(block->module);
    if (first) {
      for (size_t i = 0; i < std::min(given.size(), block->inputs.size()); ++i) {
        if (block->inputs[i].type.gradient) forward->second.push_back(given[i]);
      }
    } else {
      for (const string& input : op.inputs) Require(op, input, meanings_.GradientOf(own));
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const bool gradient = !first && i < forward->second.size();
      values_[op.outputs[i].name] = gradient ? meanings_.GradientOf(forward->second[i]) : own;
    }
  }

  void Exchange(const Instruction& op) {
    for (const ExchangePart& part : op.parts) {
      string maker, counted;
      if (part.shift == 0) {
        const Bridge* bridge = index_.plan().FindBridge(part.bridge);
        if (!bridge) continue;  // VerifyMicrobatches
        maker = bridge->from;
        // The language model counts the rows of the bridge in its tokens, the encoder those that its images make.
        counted = part.send == part.backward ? bridge->name : bridge->from;
        Require(op, part.sizes, meanings_.RowCounts(counted));
      } else {
        const Group* group = index_.group(part.group);
        if (!group) continue;
        maker = group->module;
        if (!part.sizes.empty()) Require(op, part.sizes, SizesBetweenStages(*group));
      }
      const Meaning made = meanings_.MadeBy(maker), carried = part.backward ? meanings_.GradientOf(made) : made;
      if (part.send) {
        Require(op, part.value, carried);
      } else {
        values_[part.value] = carried;
      }
    }
  }

  // What says how many rows come from another stage. Of a language model, which has one encoder where it receives such,
  // the rows of each sample do.
  Meaning SizesBetweenStages(const Group& group) {
    const Module* module = index_.module(group.module);
    const bool counted = module && module->carries_loss;
    return counted ? meanings_.RowCountsAt(group.module).front() : meanings_.Of("image sizes");
  }

  // A rank that only receives has no rows to look at. The counts, which all ranks of the lane have, say which rows
  // pass.
  void Broadcast(const Instruction& op) {
    if (op.inputs.empty() || op.outputs.empty()) return;
    const Meaning counts = Find(op.inputs[0]), rows = meanings_.RowsOf(counts);
    broadcasts_.push_back(counts);
    if (rows == kNoMeaning)
      return Fail(op, absl::StrCat("broadcasts rows counted by ", op.inputs[0], ", which is ", meanings_.TextOf(counts),
                                   ", not row counts of a bridge"));
    if (op.inputs.size() > 1) Require(op, op.inputs[1], rows);
    values_[op.outputs[0].name] = rows;
  }

  const PlanIndex& index_;
  const Role& role_;
  const SampleList& list_;
  Meanings& meanings_;
  std::vector<Violation>& violations_;
  std::map<string, Meaning> values_;
  std::map<int, MicrobatchMeanings> microbatches_;
  // by frame and microbatch: inputs of the forward that take a gradient
  std::map<std::pair<string, int>, std::vector<Meaning>> forward_inputs_;
  std::vector<Meaning> broadcasts_;
  std::set<string> said_;
};

}  // namespace

std::vector<Violation> VerifyMeanings(const PlanIndex& index) {
  std::vector<Violation> violations;
  Meanings meanings(index, violations);
  for (const SampleList& list : SampleListsOf(index.plan())) {
    std::map<std::pair<string, int>, std::pair<const Role*, std::vector<Meaning>>> lanes;  // by module and stage
    for (const Role& role : index.plan().roles) {
      RoleMeanings checked(index, role, list, meanings, violations);
      checked.Check();
      const Module* module = role.modules.empty() ? nullptr : index.module(role.modules.front());
      if (!module) continue;
      const auto [lane, first] = lanes.try_emplace({module->name, StageOf(role, *module)}, &role, checked.broadcasts());
      if (first || lane->second.second == checked.broadcasts()) continue;
      violations.push_back(
          {"V5",
           absl::StrCat("role ", role.name, " broadcasts the rows of its lane in another order than role ",
                        lane->second.first->name, " of the same stage"),
           index.OriginOf(-1, role.origin, module)});
    }
  }
  return violations;
}

}  // namespace planwright
