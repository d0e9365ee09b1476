// V11 of what blocks compute: each forward block is the graph that the statement of the model gives for its layer
// kind (model_statement.h). Communication, slices, splits and joins are left out first; then computes, slots,
// settings, operands and results must be the same. Stages hand a value from layer to layer and compute nothing
// themselves.
//
// Not here: the communication that was left out (V4, V6), and backward blocks, also those that run a forward again:
// V5 compares them with the forward (verify_backward.cc).

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/op_table.h"
#include "planner/verify/rules.h"
#include "planner/verify/v11_what_follows/piece_graph.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// What a value of a block is in the statement's graph: a value, or one part of a value that is split (query, key and
// value of attention). The default is no value of the graph.
struct GraphValue {
  int value = -1, part = -1, parts = 0;
  bool operator==(const GraphValue&) const = default;
};

// Whether the comparison looks through an instruction: it only moves, cuts, joins or sums over ranks what it reads, so
// on one rank it would do nothing.
bool IsErased(const Instruction& op) {
  return OpClassOf(op.kind) == OpClass::kCommunication || op.kind == OpKind::kLocalSlice ||
         op.kind == OpKind::kSliceRows || op.kind == OpKind::kSplit || op.kind == OpKind::kConcat;
}

// Compares one forward block, of a step or of an evaluation, with the graph of its piece.
class BlockComparison {
 public:
  BlockComparison(const PieceGraph& graph, const Block& block)
      : graph_(graph), block_(block), done_(graph.computes().size(), false) {}

  // What is wrong, or "". `origin` is set to that of the wrong instruction, or to -1.
  string Problem(int& origin) {
    if (block_.inputs.size() != graph_.inputs().size()) {
      return absl::StrCat("takes ", block_.inputs.size(), " values, where its kind takes ", graph_.inputs().size());
    }
    for (size_t i = 0; i < block_.inputs.size(); ++i) known_[block_.inputs[i].name] = {graph_.inputs()[i]};
    for (const Instruction& op : block_.body) {
      origin = op.origin;
      const string problem = IsErased(op) ? PassThrough(op) : MatchCompute(op);
      if (!problem.empty()) return problem;
    }
    origin = -1;
    for (size_t i = 0; i < done_.size(); ++i) {
      const PieceGraph::Compute& compute = graph_.computes()[i];
      if (!done_[i]) return absl::StrCat("lacks the ", string(OpName(compute.kind)), " of ", compute.reads);
    }
    return OutputsProblem();
  }

 private:
  GraphValue Find(const string& name) const {
    const auto it = known_.find(name);
    return it == known_.end() ? GraphValue{} : it->second;
  }

  // An erased instruction's outputs are the same value of the graph as its input. Its counts, if it has any, must be
  // those that the statement names, or rows would go to other ranks.
  string PassThrough(const Instruction& op) {
    if (op.inputs.empty()) return absl::StrCat("has a ", string(OpName(op.kind)), " without an input");
    const GraphValue moved = Find(op.inputs[0]);
    if (op.kind == OpKind::kSplit) {
      const int parts = static_cast<int>(op.outputs.size());
      if (moved.part >= 0) return absl::StrCat("splits ", op.inputs[0], " twice");
      for (int i = 0; i < parts; ++i) known_[op.outputs[static_cast<size_t>(i)].name] = {moved.value, i, parts};
      return "";
    }
    if (op.kind == OpKind::kConcat)
      return absl::StrCat("joins ", op.inputs[0], " by concat, which only a backward does");
    for (size_t i = 1; i < op.inputs.size(); ++i) {
      if (Find(op.inputs[i]) != GraphValue{graph_.counts()} || graph_.counts() < 0) {
        return absl::StrCat("moves ", op.inputs[0], " by the counts ", op.inputs[i], ", which count other rows");
      }
    }
    for (const Output& output : op.outputs) known_[output.name] = moved;
    return "";
  }

  // The inputs as values of the graph. All parts of a split value, in order, are the value. -1: no value of the graph.
  std::vector<int> OperandsOf(const Instruction& op) const {
    std::vector<int> operands;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const GraphValue first = Find(op.inputs[i]);
      const size_t parts = first.part < 0 ? 1 : static_cast<size_t>(first.parts);
      bool whole = first.part <= 0 && i + parts <= op.inputs.size();
      for (size_t p = 1; whole && p < parts; ++p)
        whole = Find(op.inputs[i + p]) == GraphValue{first.value, static_cast<int>(p), first.parts};
      operands.push_back(whole ? first.value : -1);
      if (whole) i += parts - 1;
    }
    return operands;
  }

  // Finds the compute of the graph that this instruction is, and binds its outputs. If there is none, the message
  // compares with the closest one: of the same kind, if possible with the same slots.
  string MatchCompute(const Instruction& op) {
    const std::vector<int> operands = OperandsOf(op);
    const PieceGraph::Compute* closest = nullptr;
    for (size_t i = 0; i < done_.size(); ++i) {
      const PieceGraph::Compute& compute = graph_.computes()[i];
      if (done_[i] || compute.kind != op.kind) continue;
      if (!closest || compute.slots == op.parameters) closest = &compute;
      if (compute.slots != op.parameters || compute.inputs != operands || compute.outputs.size() != op.outputs.size())
        continue;
      closest = &compute;
      // The merges of several encoders differ only in a setting, the token.
      if (!DifferentSetting(op, compute).empty()) continue;
      done_[i] = true;
      for (size_t o = 0; o < op.outputs.size(); ++o) known_[op.outputs[o].name] = {compute.outputs[o]};
      return "";
    }
    const string name(OpName(op.kind));
    if (!closest)
      return absl::StrCat("has a ", name, " of ", absl::StrJoin(op.inputs, ", "), " that its kind does not have");
    if (closest->slots != op.parameters) {
      return absl::StrCat("reads [", absl::StrJoin(op.parameters, " "), "] in ", name, ", not [",
                          absl::StrJoin(closest->slots, " "), "]");
    }
    if (closest->inputs != operands)
      return absl::StrCat("reads ", absl::StrJoin(op.inputs, ", "), " in ", name, ", not ", closest->reads);
    const string setting = DifferentSetting(op, *closest);
    if (!setting.empty()) return absl::StrCat("has ", name, " with another ", setting, " than its model");
    return absl::StrCat("makes ", op.outputs.size(), " values by ", name, ", not ", closest->outputs.size());
  }

  // The first setting that differs, or "".
  static string DifferentSetting(const Instruction& op, const PieceGraph::Compute& compute) {
    for (const auto& [attribute, value] : compute.settings) {
      const auto found = op.attributes.find(attribute);
      if (found == op.attributes.end() || found->second != value) return string(attribute);
    }
    for (const AttributeSpec& spec : InfoOf(op.kind).attributes) {
      const bool stated = std::any_of(compute.settings.begin(), compute.settings.end(),
                                      [&](const auto& setting) { return setting.first == spec.name; });
      if (spec.source == AttributeSource::kStated && !stated && op.attributes.contains(spec.name)) return spec.name;
    }
    return "";
  }

  // The block returns what its piece returns.
  string OutputsProblem() const {
    bool same = block_.outputs.size() == graph_.outputs().size();
    for (size_t i = 0; same && i < block_.outputs.size(); ++i)
      same = Find(block_.outputs[i]) == GraphValue{graph_.outputs()[i]};
    return same ? "" : absl::StrCat("returns ", absl::StrJoin(block_.outputs, ", "), ", not what its kind returns");
  }

  const PieceGraph& graph_;
  const Block& block_;
  std::vector<bool> done_;  // by compute of the graph: the block has it
  std::unordered_map<string_view, GraphValue> known_;
};

// The graphs of one module's pieces, and the blocks that are compared with them.
class ModuleGraphs {
 public:
  ModuleGraphs(const PlanIndex& index, const Module& module, const ModelStatement& statement,
               std::vector<Violation>& violations)
      : index_(index), module_(module), violations_(violations), numbers_(index.plan().budget, module, statement) {
    const char letter = statement.TapLetter();
    const auto add = [&](const string& frame, PieceAt at, const StatedPiece& piece) {
      pieces_[frame] = at;
      if (graphs_.contains({at.kind, at.tap, false})) return;
      for (bool evaluates : {false, true})
        graphs_.emplace(std::tuple(at.kind, at.tap, evaluates),
                        PieceGraph(index.plan(), module, numbers_.AtTap(at.tap), piece, evaluates));
    };
    add(module.name + ".embed", {'<', 0, 0}, statement.embed);
    int64_t taps = 0;
    for (const LayerSummary& layer : module.layers) {
      const auto stated = statement.layers.find(layer.kind);
      if (stated == statement.layers.end()) continue;  // VerifyModules
      const bool tap = letter != 0 && layer.kind == letter;
      add(layer.frame, {layer.kind, tap ? taps++ : 0, layer.stage}, stated->second);
    }
    add(module.name + ".head", {'>', 0, module.grid.pp - 1}, statement.head);
    for (const StatedCarry& carry : statement.carries) {
      const auto bridges = std::count_if(index.plan().bridges.begin(), index.plan().bridges.end(),
                                         [&](const Bridge& bridge) { return bridge.to == module.name; });
      if (!carry.name.ends_with('*')) carries_.push_back(carry.name);
      for (std::ptrdiff_t i = 0; carry.name.ends_with('*') && i < bridges; ++i)
        carries_.push_back(absl::StrCat(carry.name, i));
    }
  }

  // Checks the forward block of a frame: of a piece against its graph, of a stage as a chain of its pieces.
  void CheckForward(const FramePair& pair) {
    const auto piece = pieces_.find(pair.frame);
    if (piece == pieces_.end()) return CheckStage(pair);
    const auto& [kind, tap, stage] = piece->second;
    if (!pair.forward || !seen_.emplace(pair.forward, kind, tap, pair.evaluates).second) return;
    if (evaluated_.try_emplace(pair.forward, pair.evaluates).first->second != pair.evaluates)
      return Fail(*pair.forward, "runs both in a step and in an evaluation");
    const PieceGraph& graph = graphs_.at({kind, tap, pair.evaluates});
    int origin = -1;
    const string problem = BlockComparison(graph, *pair.forward).Problem(origin);
    if (!problem.empty()) Fail(*pair.forward, problem, origin);
  }

  bool IsPiece(string_view frame) const { return pieces_.contains(frame); }

 private:
  void Fail(const Block& block, string_view message, int origin = -1) {
    violations_.push_back({"V11", absl::StrCat("block ", block.name, " ", string(message)),
                           index_.OriginOf(origin, block.origin, &module_)});
  }

  // What is at a frame: '<' the embedding, '>' the head, or a kind of layers; `tap`: of one that takes carries, its
  // number among those.
  struct PieceAt {
    char kind = 0;
    int64_t tap = 0;
    int stage = 0;
  };

  const PieceGraph& GraphOf(const PieceAt& piece) const { return graphs_.at({piece.kind, piece.tap, false}); }

  // The carries that a stage is handed by the one before it: made before it, and taken in it or behind it. In the order
  // of the statement.
  std::vector<string> CarriesInto(int stage) const {
    std::vector<string> into;
    for (const string& carry : carries_) {
      bool made = false, taken = false;
      for (const auto& [frame, piece] : pieces_) {
        made |= piece.stage < stage && GraphOf(piece).Gives(carry);
        taken |= piece.stage >= stage && GraphOf(piece).Takes(carry);
      }
      if (made && taken) into.push_back(carry);
    }
    return into;
  }

  // The number of a stage's frame, "MODULE.sN"; -1: it is none.
  int StageOfFrame(string_view frame) const {
    const string begin = module_.name + ".s";
    int stage = -1;
    if (!frame.starts_with(begin)) return -1;
    const string number(frame.substr(begin.size()));
    return absl::SimpleAtoi(number, &stage) && stage >= 0 && stage < module_.grid.pp ? stage : -1;
  }

  // The forward of a stage only calls its pieces in order. Each gets the stream of the piece before it, and each carry
  // that it takes from the last piece that has made it.
  void CheckStage(const FramePair& pair) {
    if (!pair.forward || !seen_.emplace(pair.forward, 0, 0, pair.evaluates).second) return;
    const Block& block = *pair.forward;
    const int stage = StageOfFrame(pair.frame);
    if (stage < 0) return Fail(block, absl::StrCat("runs in the frame ", string(pair.frame), ", which is no stage"));
    std::vector<string> stream;
    if (!block.inputs.empty()) stream = {block.inputs.front().name};
    std::set<string_view> given;
    for (const Output& input : block.inputs) given.insert(input.name);
    std::map<string, string> carried;  // by carry: the value that it is so far
    size_t next = 1;                   // behind the stream
    for (const string& carry : CarriesInto(stage)) {
      if (next >= block.inputs.size())
        return Fail(block, absl::StrCat("takes ", block.inputs.size(), " values, and not the carry ", carry));
      given.erase(block.inputs[next].name);
      carried[carry] = block.inputs[next++].name;
    }
    bool first = true;
    for (const Instruction& op : block.body) {
      if (op.kind != OpKind::kCall)
        return Fail(block, absl::StrCat("runs ", string(OpName(op.kind)), ", but a stage only calls its layers"),
                    op.origin);
      const bool makes = op.frame == module_.name + ".embed";  // it makes the stream and reads none
      const auto piece = pieces_.find(op.frame);
      const PieceGraph* graph = piece == pieces_.end() ? nullptr : &GraphOf(piece->second);
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        const string carry = graph ? graph->CarryOfInput(i) : "";
        if (!carry.empty()) {
          const auto made = carried.find(carry);
          if (made != carried.end() && made->second == op.inputs[i]) continue;
          return Fail(
              block,
              absl::StrCat("gives ", op.inputs[i], " to ", op.frame, " as ", carry, ", not what was made of it last"),
              op.origin);
        }
        const bool streams = i == 0 && !makes;
        if (streams && (stream.size() != 1 || op.inputs[0] != stream[0])) {
          return Fail(block,
                      absl::StrCat("gives ", op.inputs[0], " to ", op.frame, ", not the output of the layer before it"),
                      op.origin);
        }
        if (streams || given.contains(op.inputs[i])) continue;
        return Fail(block,
                    absl::StrCat("gives ", op.inputs[i], " to ", op.frame, ", which is not an input of the stage"),
                    op.origin);
      }
      if (makes && !first) return Fail(block, absl::StrCat("runs ", op.frame, " after another layer"), op.origin);
      first = false;
      stream.clear();
      for (size_t i = 0; i < op.outputs.size(); ++i) {
        const string carry = graph ? graph->CarryOfOutput(i) : "";
        carry.empty() ? stream.push_back(op.outputs[i].name) : void(carried[carry] = op.outputs[i].name);
      }
    }
    for (const string& carry : stage + 1 < module_.grid.pp ? CarriesInto(stage + 1) : std::vector<string>())
      stream.push_back(carried[carry]);
    if (block.outputs != stream) Fail(block, "returns another value than its last layer");
  }

  const PlanIndex& index_;
  const Module& module_;
  std::vector<Violation>& violations_;
  const ModelNumbers numbers_;
  std::map<std::tuple<char, int64_t, bool>, PieceGraph> graphs_;  // by kind, number of the tap, and evaluates
  std::map<string, PieceAt, std::less<>> pieces_;                 // by frame
  std::vector<string> carries_;                                   // of the statement, one for each encoder
  std::set<std::tuple<const Block*, char, int64_t, bool>> seen_;
  std::map<const Block*, bool> evaluated_;  // by block: whether it is of an evaluation
};

}  // namespace

std::vector<Violation> VerifyForwardGraphs(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches,
                                           const StatementOfModule& statement_of) {
  std::vector<Violation> violations;
  std::map<string_view, ModuleGraphs> modules;
  for (const Module& module : index.plan().modules) {
    const ModelStatement* statement = statement_of(module);
    if (statement) modules.try_emplace(module.name, index, module, *statement, violations);  // else VerifyModules
  }
  for (const FramePair& pair : PairsOf(microbatches)) {
    // A frame's name starts with its module, so a block of another module would read that module's parameters.
    for (const Block* block : {pair.forward, pair.backward}) {
      if (!block || pair.frame.starts_with(block->module + ".")) continue;
      violations.push_back(
          {"V11", absl::StrCat("block ", block->name, " of ", block->module, " runs for frame ", string(pair.frame)),
           index.OriginOf(-1, block->origin, index.module(block->module))});
    }
    const auto module = pair.forward ? modules.find(pair.forward->module) : modules.end();
    if (module == modules.end()) continue;
    module->second.CheckForward(pair);
  }
  // Both ends of a bridge agree on how many layers of the encoder hand on their features.
  const auto taps_of = [&](const string& name) {
    const Module* module = index.module(name);
    const ModelStatement* statement = module ? statement_of(*module) : nullptr;
    const char letter = statement ? statement->TapLetter() : '\0';
    return module == nullptr ? 0
                             : std::count_if(module->layers.begin(), module->layers.end(),
                                             [&](const LayerSummary& layer) { return letter && layer.kind == letter; });
  };
  for (const Bridge& bridge : index.plan().bridges) {
    const auto made = taps_of(bridge.from), taken = taps_of(bridge.to);
    if (made == taken) continue;
    violations.push_back({"V11",
                          absl::StrCat("bridge ", bridge.name, " brings features of ", made, " inner layers of ",
                                       bridge.from, ", but ", bridge.to, " takes those of ", taken),
                          index.OriginOf(bridge.origin, -1, nullptr)});
  }
  // Pieces run only inside their stages: a role calls stages.
  for (const Role& role : index.plan().roles) {
    for (const SampleList& list : SampleListsOf(index.plan())) {
      for (const Instruction& op : list.Of(role)) {
        const Block* block = op.kind == OpKind::kCall ? index.block(op.block) : nullptr;
        const auto module = block ? modules.find(block->module) : modules.end();
        if (module == modules.end() || !module->second.IsPiece(op.frame)) continue;
        violations.push_back({"V11", absl::StrCat("role ", role.name, " calls ", op.frame, " outside its stage"),
                              index.OriginOf(op.origin, role.origin, index.module(block->module))});
      }
    }
  }
  return violations;
}

}  // namespace planwright
