// V5 of a step, and of a round of an evaluation: every microbatch is read once by each stage that needs it, runs as
// often as every other one, and keeps its own samples. Values of a role's program carry the number of their microbatch:
// reads and calls give it, transfers keep it, and both ends of a transfer must mean the same one. Types of what is read
// and passed are reported as V4.
//
// Not here: how often a layer runs inside one microbatch (verify_layers.cc), the order of forwards and backwards (V11,
// verify_programs.cc), which samples a bridge carries (verify_bridges.cc), and over which ranks loss tokens count (V6,
// verify_counted_once.cc).

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"
#include "planner/verify/v4_values/read_problem.h"

namespace planwright {
namespace {

using std::string;

constexpr int kUnknown = -1;  // a microbatch

// Where microbatches pass from role to role: one direction of a bridge, or from one stage to the next.
struct Channel {
  string name;  // of the bridge, or of the group between stages
  bool backward = false;
  int shift = 0;  // as the sending stage says it; 0: a bridge
  int stage = 0;  // that sends; 0: a bridge
  int part = 0;   // between stages, among the values that pass together: the stream is 0, carries are behind it
  auto operator<=>(const Channel&) const = default;
};
using ChannelEnd = std::pair<Channel, bool>;  // true: the end that sends

// Microbatches in the order in which they pass one end of a channel, for one role.
using Sequence = std::vector<int>;
using Sequences = std::map<ChannelEnd, std::map<const Role*, Sequence>>;
// Between stages all microbatches, at both ends, have values of one type: the first that was seen.
using PassedTypes = std::map<Channel, const ValueType*>;

// A list of one role. Values carry the number of their microbatch; kUnknown: received between stages, and not used
// yet.
class RoleMicrobatches {
 public:
  RoleMicrobatches(const PlanIndex& index, const Role& role, const SampleList& list, Sequences& sequences,
                   PassedTypes& passed_types, std::vector<Violation>& violations)
      : index_(index), role_(role), list_(list), sequences_(sequences), passed_types_(passed_types),
        violations_(violations) {}

  void Check() {
    for (const Instruction& op : list_.Of(role_)) Walk(op);
    // Totals, over the whole list.
    for (const string& name : role_.modules) {
      if (const Module* module = index_.module(name)) CheckModule(*module, static_cast<int>(list_.microbatches));
    }
    for (const auto& [value, transfer] : open_) Fail(nullptr, absl::StrCat("receives ", value, " and never uses it"));
  }

  // By microbatch: how often the role counts its loss tokens.
  const std::map<int, int>& loss_token_counts() const { return loss_token_counts_; }

 private:
  void Fail(const Instruction* op, string message, const char* rule = "V5") {
    violations_.push_back({rule, absl::StrCat("role ", role_.name, " ", message),
                           index_.OriginOf(op ? op->origin : -1, role_.origin, nullptr)});
  }

  // The microbatch of a value. If it was not known until now, its first use settles it, in the sequence of the channel
  // that it came over too: between stages a transfer itself does not say which microbatch it carries.
  int MicrobatchOf(const string& name, int used_for) {
    auto it = microbatch_of_.find(name);
    if (it == microbatch_of_.end()) return kUnknown;
    if (it->second == kUnknown && used_for != kUnknown) {
      it->second = used_for;
      if (auto transfer = open_.find(name); transfer != open_.end()) {
        (*transfer->second.sequence)[transfer->second.index] = used_for;
        open_.erase(transfer);
      }
    }
    return it->second;
  }

  void Walk(const Instruction& op) {
    for (const Output& output : op.outputs) types_[output.name] = &output.type;
    switch (op.kind) {
      case OpKind::kReadTokens:
      case OpKind::kReadPositions:
      case OpKind::kReadImages:
      case OpKind::kReadImageSizes: return ReadSamples(op);
      case OpKind::kReadSources: return ReadSources(op);
      case OpKind::kCall: return CallBlock(op);
      case OpKind::kExchange: return Exchange(op);
      case OpKind::kAccumulate: return AddToSum(op);
      case OpKind::kAccumulateRows: return AddBySource(op);
      default: return PassOn(op);
    }
  }

  // The module whose samples are read; null: it may not be, which is reported.
  const string* ReadModule(const Instruction& op) {
    const string* module = op.FindText("module");
    if (!module || !index_.module(*module)) {
      Fail(&op, "reads samples for no module");
    } else if (std::find(role_.modules.begin(), role_.modules.end(), *module) == role_.modules.end()) {
      Fail(&op, absl::StrCat("reads samples of ", *module, ", which it does not run"));
    } else if (op.microbatch < 0 || op.microbatch >= list_.microbatches) {
      Fail(&op, absl::StrCat("reads microbatch ", op.microbatch, ", but ", What(), " has ", list_.microbatches));
    } else {
      return module;
    }
    return nullptr;
  }
  const char* What() const { return list_.evaluates ? "a round of an evaluation" : "a step"; }

  void ReadSources(const Instruction& op) {
    const string* module = ReadModule(op);
    if (!module) return;
    ++source_reads_[op.microbatch];
    for (const Output& output : op.outputs) {
      microbatch_of_[output.name] = op.microbatch;
      sources_[output.name] = *module;
    }
    if (string problem = ReadProblem(index_.plan(), *index_.module(*module), op); !problem.empty())
      Fail(&op, std::move(problem), "V4");
  }

  void ReadSamples(const Instruction& op) {
    const string* module = ReadModule(op);
    if (!module) return;
    const OpKind what = op.kind == OpKind::kReadImageSizes ? OpKind::kReadImages : op.kind;
    if (++reads_[{*module, what, op.microbatch}] > 1) {
      Fail(&op, absl::StrCat("reads microbatch ", op.microbatch, " of ", *module, " twice"));
    }
    for (const Output& output : op.outputs) microbatch_of_[output.name] = op.microbatch;
    // The fourth output of read_tokens is the number of loss tokens (ops.def).
    if (op.kind == OpKind::kReadTokens && op.outputs.size() > 3)
      loss_tokens_[op.outputs[3].name] = {op.microbatch, *module};
    if (string problem = ReadProblem(index_.plan(), *index_.module(*module), op); !problem.empty())
      Fail(&op, std::move(problem), "V4");
  }

  void CallBlock(const Instruction& op) {
    for (const string& input : op.inputs) {
      const int found = MicrobatchOf(input, op.microbatch);
      if (found != kUnknown && found != op.microbatch) {
        Fail(&op, absl::StrCat("runs microbatch ", op.microbatch, " of ", op.frame, " on ", input,
                               ", which is of microbatch ", found));
      }
    }
    for (const Output& output : op.outputs) microbatch_of_[output.name] = op.microbatch;
    ++calls_[{op.frame, op.microbatch}];
    // A frame that runs in one microbatch must run in each.
    if (const Block* block = index_.block(op.block)) frames_[block->module].insert(op.frame);
  }

  // An instruction outside blocks (broadcast) reads values of one microbatch, and makes values of it.
  void PassOn(const Instruction& op) {
    int microbatch = kUnknown;
    for (const string& input : op.inputs) {
      const int found = MicrobatchOf(input, microbatch);
      if (found != kUnknown && microbatch != kUnknown && found != microbatch) {
        Fail(&op, absl::StrCat("joins ", input, " of microbatch ", found, " with values of microbatch ", microbatch));
      }
      if (found != kUnknown) microbatch = found;
    }
    if (microbatch == kUnknown) return;
    for (const string& input : op.inputs) MicrobatchOf(input, microbatch);  // settles those that came first
    for (const Output& output : op.outputs) microbatch_of_[output.name] = microbatch;
  }

  void Exchange(const Instruction& op) {
    std::map<ChannelEnd, int> passed;
    for (const ExchangePart& part : op.parts) {
      const Module* module = ModuleOf(part);
      if (!module) {
        Fail(&op, absl::StrCat("exchanges ", part.value, " over a bridge or group that does not exist"));
      } else if (part.shift == 0) {
        ExchangeOverBridge(op, part);
      } else {
        ExchangeBetweenStages(op, part, StageOf(role_, *module), passed);
      }
    }
  }

  // Over a bridge the row counts, which both ends have read, say which microbatch it is.
  void ExchangeOverBridge(const Instruction& op, const ExchangePart& part) {
    const int microbatch = MicrobatchOf(part.sizes, kUnknown);
    if (part.send && MicrobatchOf(part.value, microbatch) != microbatch) {
      Fail(&op, absl::StrCat("sends ", part.value, " of microbatch ", MicrobatchOf(part.value, kUnknown),
                             " with the row counts of microbatch ", microbatch));
    }
    sequences_[{Channel{part.bridge, part.backward}, part.send}][&role_].push_back(microbatch);
    if (!part.send) microbatch_of_[part.value] = microbatch;
  }

  // `stage`: of this role. `passed`: how many values of this exchange have passed over a channel.
  void ExchangeBetweenStages(const Instruction& op, const ExchangePart& part, int stage,
                             std::map<ChannelEnd, int>& passed) {
    Channel channel = {part.group, part.backward, part.send ? part.shift : -part.shift,
                       part.send ? stage : stage + part.shift};
    channel.part = passed[{channel, part.send}]++;
    Sequence& sequence = sequences_[{channel, part.send}][&role_];
    if (const auto type = types_.find(part.value); type != types_.end()) {
      const ValueType& first = *passed_types_.try_emplace(channel, type->second).first->second;
      if (type->second->layout != first.layout || type->second->gradient != first.gradient) {
        Fail(&op,
             absl::StrCat("exchanges ", part.value, " over ", part.group, " in another layout than an earlier value"),
             "V4");
      }
    }
    // The image sizes of an encoder say which microbatch it receives. Otherwise the first use of the value does.
    const int known = MicrobatchOf(part.send ? part.value : part.sizes, kUnknown);
    sequence.push_back(known);
    if (part.send) return;
    microbatch_of_[part.value] = known;
    if (known == kUnknown) open_[part.value] = {&sequence, sequence.size() - 1};
  }

  // The module whose ranks are at this end of the part; null: there is none.
  const Module* ModuleOf(const ExchangePart& part) const {
    if (part.shift != 0) {
      const Group* group = index_.group(part.group);
      return group ? index_.module(group->module) : nullptr;
    }
    const Bridge* bridge = index_.plan().FindBridge(part.bridge);
    return bridge ? index_.module(part.send == part.backward ? bridge->to : bridge->from) : nullptr;
  }

  // Outside blocks only loss tokens are added to a sum. Over which ranks they count is V6's (verify_counted_once.cc).
  void AddToSum(const Instruction& op) {
    const string* into = op.FindText("into");
    const string* name = op.FindText("module");
    auto count = op.inputs.empty() ? loss_tokens_.end() : loss_tokens_.find(op.inputs.front());
    if (!into || *into != "$integers.loss_tokens" || count == loss_tokens_.end() || !name || !index_.module(*name) ||
        *name != count->second.second) {
      return Fail(&op, absl::StrCat("adds ", op.inputs.empty() ? "nothing" : op.inputs.front(), " to ",
                                    into ? *into : "nothing",
                                    "; outside blocks only loss tokens are added, of the module that read them"));
    }
    ++loss_token_counts_[count->second.first];
  }

  // Losses and loss tokens by source, of the microbatch that both inputs are of (docs/training/evaluation.md#sums).
  void AddBySource(const Instruction& op) {
    const string* into = op.FindText("into");
    const string* name = op.FindText("module");
    if (op.inputs.size() != 2) return;  // V4
    const int microbatch = MicrobatchOf(op.inputs[1], kUnknown), of_x = MicrobatchOf(op.inputs[0], microbatch);
    const string sums = list_.evaluates ? "$evaluated" : "$source";
    if (!into || !name || !index_.module(*name) || !(*into == sums + "_losses" || *into == sums + "_tokens"))
      return Fail(&op, absl::StrCat("adds ", op.inputs[0], " to ", into ? *into : "nothing", ", no sum of ", What()));
    const auto parts = sources_.find(op.inputs[1]);
    if (microbatch == kUnknown || of_x != microbatch || parts == sources_.end() || parts->second != *name)
      return Fail(&op, absl::StrCat("adds ", op.inputs[0], " by ", op.inputs[1], ", which are not of one microbatch"));
    ++source_sums_[{*into, microbatch}];
  }

  // Of the last stage of the language model each microbatch is read and added once, of others none.
  void CheckSourceSums(const Module& module, int microbatches) {
    const bool sums = list_.evaluates || index_.plan().sums_by_source();
    const bool adds = sums && module.carries_loss && StageOf(role_, module) == module.grid.pp - 1;
    const string prefix = list_.evaluates ? "$evaluated" : "$source";
    if (!module.carries_loss) return;
    for (int m = 0; m < microbatches; ++m) {
      const int times = source_reads_.contains(m) ? source_reads_[m] : 0;
      if (times != (adds ? 1 : 0)) {
        Fail(nullptr,
             absl::StrCat("reads the sources of microbatch ", m, " ", times, " times, not ", adds ? "once" : "never"));
      }
    }
    for (const char* what : {"_losses", "_tokens"}) {
      for (int m = 0; m < microbatches; ++m) {
        const auto found = source_sums_.find({prefix + what, m});
        const int times = found == source_sums_.end() ? 0 : found->second;
        if (times == (adds ? 1 : 0)) continue;
        Fail(nullptr, absl::StrCat("adds microbatch ", m, " to ", prefix, what, " ", times, " times, not ",
                                   adds ? "once" : "never"));
      }
    }
  }

  void CheckModule(const Module& module, int microbatches) {
    CheckSourceSums(module, microbatches);
    const int stage = StageOf(role_, module);
    const bool language = module.carries_loss;
    // The first stage reads what the model is given, the last stage of the language model its labels. Later stages of
    // an encoder read image sizes, if their layers need them.
    const bool reads = stage == 0 || (language && stage == module.grid.pp - 1);
    if (frames_[module.name].empty()) return Fail(nullptr, absl::StrCat("never runs ", module.name));
    for (int m = 0; m < microbatches; ++m) {
      if (reads && !reads_.contains({module.name, language ? OpKind::kReadTokens : OpKind::kReadImages, m})) {
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
        Fail(nullptr, absl::StrCat("runs microbatch ", call.second, " of ", call.first, ", but ", What(), " has ",
                                   microbatches));
      }
    }
  }

  const PlanIndex& index_;
  const Role& role_;
  const SampleList& list_;
  Sequences& sequences_;
  PassedTypes& passed_types_;
  std::vector<Violation>& violations_;
  std::map<string, int> microbatch_of_;  // by value
  std::map<string, const ValueType*> types_;
  // By value that was received between stages and is not used yet: where its microbatch belongs.
  struct OpenTransfer {
    Sequence* sequence = nullptr;
    size_t index = 0;
  };
  std::map<string, OpenTransfer> open_;
  std::map<std::tuple<string, OpKind, int>, int> reads_;  // by module, what is read, and microbatch
  std::map<std::pair<string, int>, int> calls_;           // by frame and microbatch
  std::map<string, std::set<string>> frames_;             // by module: those that are called
  std::map<string, std::pair<int, string>> loss_tokens_;  // by value: microbatch, and module that read it
  std::map<int, int> loss_token_counts_;
  std::map<string, string> sources_;                   // by value of read_sources: the module
  std::map<int, int> source_reads_;                    // by microbatch
  std::map<std::pair<string, int>, int> source_sums_;  // by sum and microbatch: how often it is added to
};

// Loss tokens are counted on one stage of the language model, in each microbatch once, by all roles of that stage.
void CheckLossTokens(const PlanIndex& index, const Module& module,
                     const std::map<const Role*, std::map<int, int>>& tokens, std::vector<Violation>& violations) {
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
    violations.push_back({"V5",
                          absl::StrCat("role ", role->name, " counts no loss tokens, but its siblings of stage ",
                                       *stages.begin(), " do"),
                          index.OriginOf(-1, role->origin, &module)});
  }
}

// Both ends of a channel see the same microbatches in the same order, each once.
void CheckChannels(const PlanIndex& index, const Sequences& sequences, int64_t microbatches,
                   std::vector<Violation>& violations) {
  for (const auto& [end, roles] : sequences) {
    const auto& [channel, sends] = end;
    const auto other = sequences.find({channel, !sends});
    for (const auto& [role, sequence] : roles) {
      const string what = absl::StrCat("role ", role->name, " ", sends ? "sends" : "receives", " over ", channel.name,
                                       channel.backward ? " backward" : " forward");
      const int origin = index.OriginOf(-1, role->origin, nullptr);
      if (other == sequences.end()) {
        violations.push_back({"V5", absl::StrCat(what, ", but no role ", sends ? "receives" : "sends"), origin});
        continue;
      }
      if (!sends) continue;  // one end compares
      for (const auto& [peer, received] : other->second) {
        if (received == sequence) continue;
        violations.push_back(
            {"V5", absl::StrCat(what, " microbatches in another order than role ", peer->name, " receives them"),
             origin});
      }
    }
    // What passes together is of one microbatch.
    Channel stream = channel;
    stream.part = 0;
    const auto together = sequences.find({stream, sends});
    for (const auto& [role, sequence] : roles) {
      const auto first = together == sequences.end() ? roles.end() : together->second.find(role);
      if (channel.part > 0 &&
          (together == sequences.end() || first == together->second.end() || first->second != sequence)) {
        violations.push_back({"V5",
                              absl::StrCat("role ", role->name, " ", sends ? "sends" : "receives", " over ",
                                           channel.name, " values of several microbatches together"),
                              index.OriginOf(-1, role->origin, nullptr)});
      }
      Sequence sorted = sequence;
      std::sort(sorted.begin(), sorted.end());
      bool once = static_cast<int64_t>(sorted.size()) == microbatches;
      for (size_t i = 0; once && i < sorted.size(); ++i) once = sorted[i] == static_cast<int>(i);
      if (!once) {
        violations.push_back({"V5",
                              absl::StrCat("role ", role->name, " does not ", sends ? "send" : "receive",
                                           " every microbatch once over ", channel.name),
                              index.OriginOf(-1, role->origin, nullptr)});
      }
    }
  }
}

}  // namespace

std::vector<Violation> VerifyMicrobatches(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const SampleList& list : SampleListsOf(index.plan())) {
    Sequences sequences;
    PassedTypes passed_types;
    std::map<const Role*, std::map<int, int>> loss_tokens;
    for (const Role& role : index.plan().roles) {
      RoleMicrobatches microbatches(index, role, list, sequences, passed_types, violations);
      microbatches.Check();
      loss_tokens[&role] = microbatches.loss_token_counts();
    }
    for (const Module& module : index.plan().modules) {
      if (module.carries_loss && !list.evaluates) CheckLossTokens(index, module, loss_tokens, violations);
    }
    CheckChannels(index, sequences, list.microbatches, violations);
  }
  return violations;
}

}  // namespace planwright
