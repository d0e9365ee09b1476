// V5 of a step: every microbatch is read once by each stage that needs it, runs as often as every other one, and
// keeps its own samples. Values of a role's program carry the number of their microbatch: reads and calls give it,
// transfers keep it, and both ends of a transfer must mean the same one. The types of what is read and passed are
// reported as V4, and loss tokens that count a lane twice as V6.
//
// Not here: how often a layer runs inside one microbatch (verify_layers.cc), the order of forwards and backwards
// (V11, verify_programs.cc), and which samples a bridge carries (verify_bridges.cc).

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/verify/rules.h"
#include "planner/verify/v4_values/read_problem.h"

namespace planwright {
namespace {

using std::string;

constexpr int kUnknown = -1;

// Microbatches in the order in which they pass one end of a channel.
using Sequence = std::vector<int>;
// Channel: bridge or group; backward; shift (0: a bridge); stage that sends or receives; sends.
using Channel = std::tuple<string, bool, int, int, bool>;
using Ends = std::map<Channel, std::map<const Role*, Sequence>>;
// What passes between stages, by channel without its end: both ends of all microbatches have it alike.
using Passed = std::map<std::tuple<string, bool, int, int>, const ValueType*>;

class RoleSamples {
 public:
  RoleSamples(const PlanIndex& index, const Role& role, Ends& ends, Passed& passed, std::vector<Violation>& violations)
      : index_(index), role_(role), ends_(ends), passed_(passed), violations_(violations) {}

  void Check() {
    for (const Instruction& op : role_.step) Step(op);
    const int64_t microbatches = index_.plan().budget.microbatches;
    for (const string& name : role_.modules) {
      if (const Module* module = index_.module(name)) CheckModule(*module, static_cast<int>(microbatches));
    }
    for (const auto& [channel, value] : open_) {
      Fail(nullptr, absl::StrCat("receives ", value.first, " and never uses it"));
    }
  }

 private:
  void Fail(const Instruction* op, string message, const char* rule = "V5") {
    violations_.push_back({rule, absl::StrCat("role ", role_.name, " ", message),
                           index_.OriginOf(op ? op->origin : -1, role_.origin, nullptr)});
  }

  // The microbatch of a value, settled as `microbatch` if it was not known.
  int Tag(const string& name, int microbatch) {
    auto it = tags_.find(name);
    if (it == tags_.end()) return kUnknown;
    if (it->second == kUnknown && microbatch != kUnknown) {
      it->second = microbatch;
      if (auto end = open_.find(name); end != open_.end()) {
        (*end->second.second.first)[end->second.second.second] = microbatch;
        open_.erase(end);
      }
    }
    return it->second;
  }

  void Step(const Instruction& op) {
    for (const Output& output : op.outputs) types_[output.name] = &output.type;
    switch (op.kind) {
      case OpKind::kReadTokens:
      case OpKind::kReadImages:
      case OpKind::kReadImageSizes: return Read(op);
      case OpKind::kCall: return Call(op);
      case OpKind::kExchange: return Exchange(op);
      case OpKind::kAccumulate: return Accumulate(op);
      default: return Pass(op);
    }
  }

  void Read(const Instruction& op) {
    const string* module = op.FindText("module");
    if (!module || !index_.module(*module)) return Fail(&op, "reads samples for no module");
    if (std::find(role_.modules.begin(), role_.modules.end(), *module) == role_.modules.end()) {
      return Fail(&op, absl::StrCat("reads samples of ", *module, ", which it does not run"));
    }
    if (op.microbatch < 0 || op.microbatch >= index_.plan().budget.microbatches) {
      return Fail(&op, absl::StrCat("reads microbatch ", op.microbatch, " of ", index_.plan().budget.microbatches));
    }
    if (++reads_[{*module, op.kind == OpKind::kReadTokens, op.microbatch}] > 1) {
      Fail(&op, absl::StrCat("reads microbatch ", op.microbatch, " of ", *module, " twice"));
    }
    for (const Output& output : op.outputs) tags_[output.name] = op.microbatch;
    if (op.kind == OpKind::kReadTokens && op.outputs.size() > 3)
      loss_tokens_[op.outputs[3].name] = {op.microbatch, *module};
    if (string problem = ReadProblem(index_.plan(), *index_.module(*module), op); !problem.empty())
      Fail(&op, std::move(problem), "V4");
  }

  void Call(const Instruction& op) {
    for (const string& input : op.inputs) {
      const int tag = Tag(input, op.microbatch);
      if (tag != kUnknown && tag != op.microbatch) {
        Fail(&op, absl::StrCat("runs microbatch ", op.microbatch, " of ", op.frame, " on ", input,
                               ", which is of microbatch ", tag));
      }
    }
    for (const Output& output : op.outputs) tags_[output.name] = op.microbatch;
    ++calls_[{op.frame, op.microbatch}];
    if (const Block* block = index_.block(op.block)) frames_[block->module].insert(op.frame);
  }

  // Whatever reads values of one microbatch makes values of it.
  void Pass(const Instruction& op) {
    int microbatch = kUnknown;
    for (const string& input : op.inputs) {
      const int tag = Tag(input, microbatch);
      if (tag != kUnknown && microbatch != kUnknown && tag != microbatch) {
        Fail(&op, absl::StrCat("joins ", input, " of microbatch ", tag, " with values of microbatch ", microbatch));
      }
      if (tag != kUnknown) microbatch = tag;
    }
    if (microbatch == kUnknown) return;
    for (const string& input : op.inputs) Tag(input, microbatch);
    for (const Output& output : op.outputs) tags_[output.name] = microbatch;
  }

  void Exchange(const Instruction& op) {
    for (const ExchangePart& part : op.parts) {
      const bool bridge = part.shift == 0;
      const Module* module = ModuleOf(part);
      if (!module) {
        Fail(&op, absl::StrCat("exchanges ", part.value, " over a bridge or group that does not exist"));
        continue;
      }
      const int stage = StageOf(role_, *module);
      const Channel channel(bridge ? part.bridge : part.group, part.backward,
                            bridge ? 0 : (part.send ? part.shift : -part.shift),
                            bridge ? 0 : (part.send ? stage : stage + part.shift), part.send);
      Sequence& sequence = ends_[channel][&role_];
      if (bridge) {
        const int rows = Tag(part.sample_rows, kUnknown);
        if (part.send && Tag(part.value, rows) != rows) {
          Fail(&op, absl::StrCat("sends ", part.value, " of microbatch ", Tag(part.value, kUnknown),
                                 " with the row counts of microbatch ", rows));
        }
        sequence.push_back(rows);
        if (!part.send) tags_[part.value] = rows;
        continue;
      }
      const auto type = types_.find(part.value);
      if (type != types_.end()) {
        const auto [name, backward, shift, from, sends] = channel;
        const ValueType& first = *passed_.try_emplace({name, backward, shift, from}, type->second).first->second;
        const bool alike = type->second->layout == first.layout && type->second->gradient == first.gradient;
        if (!alike)
          Fail(&op, absl::StrCat("exchanges ", part.value, " in another layout than others at its ends"), "V4");
      }
      sequence.push_back(part.send ? Tag(part.value, kUnknown) : kUnknown);
      if (part.send) continue;
      tags_[part.value] = kUnknown;
      open_[part.value] = {part.value, {&sequence, sequence.size() - 1}};
    }
  }

  // The module whose ranks this end of the part is of.
  const Module* ModuleOf(const ExchangePart& part) const {
    if (part.shift != 0) {
      const Group* group = index_.group(part.group);
      return group ? index_.module(group->module) : nullptr;
    }
    const Bridge* bridge = index_.plan().FindBridge(part.bridge);
    return bridge ? index_.module(part.send == part.backward ? bridge->to : bridge->from) : nullptr;
  }

  // In a program only the loss tokens of a microbatch are counted; every rank of a lane has read the same.
  void Accumulate(const Instruction& op) {
    const string* into = op.FindText("into");
    const string* name = op.FindText("module");
    const Module* module = name ? index_.module(*name) : nullptr;
    auto count = op.inputs.empty() ? loss_tokens_.end() : loss_tokens_.find(op.inputs.front());
    if (!into || *into != "$integers.loss_tokens" || count == loss_tokens_.end() || !module ||
        *name != count->second.second) {
      return Fail(&op, absl::StrCat("adds ", op.inputs.empty() ? "nothing" : op.inputs.front(), " to ",
                                    into ? *into : "nothing",
                                    ": only loss tokens are counted here, of the module that read them"));
    }
    ++tokens_[count->second.first];
    std::set<string> once;
    if (const string* axes = op.FindText("once_over")) once = absl::StrSplit(*axes, ',', absl::SkipEmpty());
    string wanted;
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      const string axis_name(AxisName(axis));
      const bool named = once.erase(axis_name) > 0;
      if (module->grid.size(axis) > 1) absl::StrAppend(&wanted, wanted.empty() ? "" : ",", axis_name);
      if (module->grid.size(axis) > 1 && !named)
        Fail(&op, absl::StrCat("counts the loss tokens of a lane on every rank along ", axis_name), "V6");
    }
    for (const string& axis : once)
      Fail(&op, absl::StrCat("counts loss tokens once over ", axis, ", along which lanes differ"), "V6");
    const string* text = op.FindText("once_over");
    if (text ? wanted.empty() || *text != wanted : !wanted.empty()) {
      Fail(&op, absl::StrCat("counts loss tokens once over other axes than ", wanted), "V6");
    }
  }

  void CheckModule(const Module& module, int microbatches) {
    const int stage = StageOf(role_, module);
    const bool language = module.carries_loss;
    const bool reads = stage == 0 || (language && stage == module.grid.pp - 1);
    if (frames_[module.name].empty()) return Fail(nullptr, absl::StrCat("never runs ", module.name));
    for (int m = 0; m < microbatches; ++m) {
      if (reads && !reads_.contains({module.name, language, m}) &&
          (language || !reads_.contains({module.name, false, m}))) {
        Fail(nullptr, absl::StrCat("never reads microbatch ", m, " of ", module.name));
      }
      for (const string& frame : frames_[module.name]) {
        auto calls = calls_.find({frame, m});
        if (calls == calls_.end()) {
          Fail(nullptr, absl::StrCat("never runs microbatch ", m, " of ", frame));
        } else if (calls->second != calls_[{frame, 0}]) {
          Fail(nullptr, absl::StrCat("runs microbatch ", m, " of ", frame, " ", calls->second, " times, microbatch 0 ",
                                     calls_[{frame, 0}], " times"));
        }
      }
    }
    for (const auto& [call, times] : calls_) {
      if (call.second < 0 || call.second >= microbatches) {
        Fail(nullptr, absl::StrCat("runs microbatch ", call.second, " of ", call.first, ", of ", microbatches));
      }
    }
  }

  const PlanIndex& index_;
  const Role& role_;
  Ends& ends_;
  Passed& passed_;
  std::vector<Violation>& violations_;
  std::map<string, int> tags_;
  std::map<string, const ValueType*> types_;
  // received between stages, microbatch not known yet
  std::map<string, std::pair<string, std::pair<Sequence*, size_t>>> open_;
  std::map<std::tuple<string, bool, int>, int> reads_;
  std::map<std::pair<string, int>, int> calls_;
  std::map<string, std::set<string>> frames_;
  std::map<string, std::pair<int, string>> loss_tokens_;  // microbatch, and module that read them

 public:
  std::map<int, int> tokens_;  // by microbatch: how often the role counts its loss tokens
};

// Loss tokens are counted on one stage of the language model, every microbatch once.
void CheckTokens(const PlanIndex& index, const Module& module, const std::map<const Role*, std::map<int, int>>& tokens,
                 std::vector<Violation>& violations) {
  std::set<int> stages;
  for (const auto& [role, counts] : tokens) {
    if (!Runs(*role, module) || counts.empty()) continue;
    stages.insert(StageOf(*role, module));
    for (int m = 0; m < index.plan().budget.microbatches; ++m) {
      auto it = counts.find(m);
      const int times = it == counts.end() ? 0 : it->second;
      if (times == 1) continue;
      violations.push_back(
          {"V5", absl::StrCat("role ", role->name, " counts the loss tokens of microbatch ", m, " ", times, " times"),
           index.OriginOf(-1, role->origin, &module)});
    }
  }
  if (stages.size() != 1) {
    violations.push_back(
        {"V5", absl::StrCat("loss tokens of ", module.name, " are counted on ", stages.size(), " stages, not on one"),
         index.OriginOf(-1, -1, &module)});
    return;
  }
  for (const auto& [role, counts] : tokens) {
    if (!Runs(*role, module) || !counts.empty() || StageOf(*role, module) != *stages.begin()) continue;
    violations.push_back({"V5", absl::StrCat("role ", role->name, " counts no loss tokens, as its siblings do"),
                          index.OriginOf(-1, role->origin, &module)});
  }
}

// Both ends of a channel see the same microbatches in the same order.
void CheckChannels(const PlanIndex& index, const Ends& ends, std::vector<Violation>& violations) {
  for (const auto& [channel, roles] : ends) {
    auto [name, backward, shift, stage, sends] = channel;
    auto other = ends.find(Channel(name, backward, shift, stage, !sends));
    for (const auto& [role, sequence] : roles) {
      const string what = absl::StrCat("role ", role->name, " ", sends ? "sends" : "receives", " over ", name,
                                       backward ? " backward" : " forward");
      const int origin = index.OriginOf(-1, role->origin, nullptr);
      if (other == ends.end()) {
        violations.push_back({"V5", absl::StrCat(what, " what nobody ", sends ? "receives" : "sends"), origin});
        continue;
      }
      if (!sends) continue;
      for (const auto& [peer, received] : other->second) {
        if (received == sequence) continue;
        violations.push_back(
            {"V5", absl::StrCat(what, " microbatches in another order than role ", peer->name, " receives them"),
             origin});
      }
    }
    // Each microbatch passes once.
    for (const auto& [role, sequence] : roles) {
      Sequence sorted = sequence;
      std::sort(sorted.begin(), sorted.end());
      bool once = static_cast<int64_t>(sorted.size()) == index.plan().budget.microbatches;
      for (size_t i = 0; once && i < sorted.size(); ++i) once = sorted[i] == static_cast<int>(i);
      if (!once) {
        violations.push_back({"V5",
                              absl::StrCat("role ", role->name, " does not ", sends ? "send" : "receive",
                                           " every microbatch once over ", name),
                              index.OriginOf(-1, role->origin, nullptr)});
      }
    }
  }
}

}  // namespace

std::vector<Violation> VerifyMicrobatches(const PlanIndex& index) {
  std::vector<Violation> violations;
  Ends ends;
  Passed passed;
  std::map<const Role*, std::map<int, int>> tokens;
  for (const Role& role : index.plan().roles) {
    RoleSamples samples(index, role, ends, passed, violations);
    samples.Check();
    tokens[&role] = std::move(samples.tokens_);
  }
  for (const Module& module : index.plan().modules) {
    if (module.carries_loss) CheckTokens(index, module, tokens, violations);
  }
  CheckChannels(index, ends, violations);
  return violations;
}

}  // namespace planwright
