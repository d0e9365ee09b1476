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
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/op_table.h"
#include "planner/verify/model_statement/piece_graph.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// A value of the graph; of one that is split (query | key and value), the part. Nowhere: no value of the graph.
struct Known {
  int value = -1, part = -1, parts = 0;
  bool operator==(const Known&) const = default;
};

// Whether an instruction only moves, cuts, joins or sums over ranks what it is given.
bool Erased(const Instruction& op) {
  return OpClassOf(op.kind) == OpClass::kCommunication || op.kind == OpKind::kLocalSlice ||
         op.kind == OpKind::kSliceRows || op.kind == OpKind::kSplit || op.kind == OpKind::kConcat;
}

// One forward block against the graph of its piece.
class Comparison {
 public:
  Comparison(const PieceGraph& graph, const Block& block)
      : graph_(graph), block_(block), done_(graph.computes().size(), false) {}

  // What is wrong, or "". `origin`: of the instruction where it is.
  string Problem(int& origin) {
    if (block_.inputs.size() != graph_.inputs().size()) {
      return absl::StrCat("takes ", block_.inputs.size(), " values, where its kind takes ", graph_.inputs().size());
    }
    for (size_t i = 0; i < block_.inputs.size(); ++i) known_[block_.inputs[i].name] = {graph_.inputs()[i]};
    for (const Instruction& op : block_.body) {
      origin = op.origin;
      const string problem = Erased(op) ? Erase(op) : Match(op);
      if (!problem.empty()) return problem;
    }
    origin = -1;
    for (size_t i = 0; i < done_.size(); ++i) {
      const PieceGraph::Compute& compute = graph_.computes()[i];
      if (!done_[i]) return absl::StrCat("lacks the ", string(OpName(compute.kind)), " of ", compute.reads);
    }
    return Outputs();
  }

 private:
  Known Find(const string& name) const {
    const auto it = known_.find(name);
    return it == known_.end() ? Known{} : it->second;
  }

  string Erase(const Instruction& op) {
    if (op.inputs.empty()) return absl::StrCat("has a ", string(OpName(op.kind)), " of nothing");
    const Known moved = Find(op.inputs[0]);
    if (op.kind == OpKind::kSplit) {
      const int parts = static_cast<int>(op.outputs.size());
      if (moved.part >= 0) return absl::StrCat("splits ", op.inputs[0], " twice");
      for (int i = 0; i < parts; ++i) known_[op.outputs[static_cast<size_t>(i)].name] = {moved.value, i, parts};
      return "";
    }
    if (op.kind == OpKind::kConcat) return absl::StrCat("joins ", op.inputs[0], ", which no forward does");
    for (size_t i = 1; i < op.inputs.size(); ++i) {
      if (Find(op.inputs[i]) != Known{graph_.counts()} || graph_.counts() < 0) {
        return absl::StrCat("moves ", op.inputs[0], " by the counts ", op.inputs[i], ", which count other rows");
      }
    }
    for (const Output& output : op.outputs) known_[output.name] = moved;
    return "";
  }

  // Operands as the graph numbers them: all parts of a value in order are the value. -1: no value of the graph.
  std::vector<int> Operands(const Instruction& op) const {
    std::vector<int> operands;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const Known first = Find(op.inputs[i]);
      const size_t parts = first.part < 0 ? 1 : static_cast<size_t>(first.parts);
      bool whole = first.part <= 0 && i + parts <= op.inputs.size();
      for (size_t p = 1; whole && p < parts; ++p)
        whole = Find(op.inputs[i + p]) == Known{first.value, static_cast<int>(p), first.parts};
      operands.push_back(whole ? first.value : -1);
      if (whole) i += parts - 1;
    }
    if (op.kind == OpKind::kAdd) std::sort(operands.begin(), operands.end());
    return operands;
  }

  string Match(const Instruction& op) {
    const std::vector<int> operands = Operands(op);
    const PieceGraph::Compute* alike = nullptr;
    for (size_t i = 0; i < done_.size(); ++i) {
      const PieceGraph::Compute& compute = graph_.computes()[i];
      if (done_[i] || compute.kind != op.kind) continue;
      if (!alike || *compute.slots == op.parameters) alike = &compute;
      if (*compute.slots != op.parameters || compute.inputs != operands || compute.outputs.size() != op.outputs.size())
        continue;
      alike = &compute;
      if (!Settings(op, compute).empty()) continue;  // rows of several encoders are merged alike, each at its own token
      done_[i] = true;
      for (size_t o = 0; o < op.outputs.size(); ++o) known_[op.outputs[o].name] = {compute.outputs[o]};
      return "";
    }
    const string name(OpName(op.kind));
    if (!alike)
      return absl::StrCat("has a ", name, " of ", absl::StrJoin(op.inputs, ", "), " that its kind does not have");
    if (*alike->slots != op.parameters) {
      return absl::StrCat("reads [", absl::StrJoin(op.parameters, " "), "] in ", name, ", not [",
                          absl::StrJoin(*alike->slots, " "), "]");
    }
    if (alike->inputs != operands)
      return absl::StrCat("reads ", absl::StrJoin(op.inputs, ", "), " in ", name, ", not ", alike->reads);
    const string setting = Settings(op, *alike);
    if (!setting.empty()) return absl::StrCat("has ", name, " with another ", setting, " than its model");
    return absl::StrCat("makes ", op.outputs.size(), " values by ", name, ", not ", alike->outputs.size());
  }

  // The first setting that differs, or "".
  static string Settings(const Instruction& op, const PieceGraph::Compute& compute) {
    for (const auto& [attribute, value] : compute.settings) {
      const auto found = op.attributes.find(attribute);
      if (found == op.attributes.end() || found->second != value) return string(attribute);
    }
    return "";
  }

  string Outputs() const {
    bool same = block_.outputs.size() == graph_.outputs().size();
    for (size_t i = 0; same && i < block_.outputs.size(); ++i)
      same = Find(block_.outputs[i]) == Known{graph_.outputs()[i]};
    return same ? "" : absl::StrCat("hands on ", absl::StrJoin(block_.outputs, ", "), ", not what its kind makes");
  }

  const PieceGraph& graph_;
  const Block& block_;
  std::vector<bool> done_;
  std::unordered_map<string_view, Known> known_;
};

class ModuleGraphs {
 public:
  ModuleGraphs(const PlanIndex& index, const Module& module, const ModelStatement& statement,
               std::vector<Violation>& violations)
      : index_(index), module_(module), violations_(violations), numbers_(index.plan(), module, statement) {
    const auto graph = [&](const StatedPiece& piece) { return PieceGraph(index.plan(), module, numbers_, piece); };
    graphs_.emplace('<', graph(statement.embed));
    graphs_.emplace('>', graph(statement.head));
    kinds_ = {{module.name + ".embed", '<'}, {module.name + ".head", '>'}};
    for (const LayerSummary& layer : module.layers) {
      const auto stated = statement.layers.find(layer.kind);
      if (stated == statement.layers.end()) continue;  // VerifyModules
      if (!graphs_.contains(layer.kind)) graphs_.emplace(layer.kind, graph(stated->second));
      kinds_[layer.frame] = layer.kind;
    }
  }

  // Of every frame of the module.
  void Check(const FramePair& pair) {
    const auto kind = kinds_.find(pair.frame);
    if (kind == kinds_.end()) return Stage(pair);
    if (!pair.forward || !seen_.emplace(pair.forward, kind->second).second) return;
    const PieceGraph& graph = graphs_.at(kind->second);
    int origin = -1;
    const string problem = Comparison(graph, *pair.forward).Problem(origin);
    if (!problem.empty()) Fail(*pair.forward, problem, origin);
  }

  // Every block of a frame, backward too.
  void Reshards(const Block& block, string_view frame) {
    const auto kind = kinds_.find(frame);
    if (kind == kinds_.end() || !resharded_.emplace(&block, kind->second).second) return;
    const auto& stated = graphs_.at(kind->second).reshards();
    for (const Instruction& op : block.body) {
      if (op.kind != OpKind::kReshard) continue;
      const std::vector<int64_t>* segments = op.FindIntegers("segments");
      if (segments && std::find(stated.begin(), stated.end(), *segments) != stated.end()) continue;
      Fail(block,
           absl::StrCat("reshards ", op.inputs.empty() ? "" : op.inputs[0],
                        " in segments that no value of its kind has"),
           op.origin);
    }
  }

  bool IsPiece(string_view frame) const { return kinds_.contains(frame); }

 private:
  void Fail(const Block& block, string_view message, int origin = -1) {
    violations_.push_back({"V11", absl::StrCat("block ", block.name, " ", string(message)),
                           index_.OriginOf(origin, block.origin, &module_)});
  }

  // The forward of a stage: its layers, each given what the one before made.
  void Stage(const FramePair& pair) {
    if (!pair.forward || !seen_.emplace(pair.forward, 0).second) return;
    const Block& block = *pair.forward;
    std::vector<string> stream;
    if (!block.inputs.empty()) stream = {block.inputs.front().name};
    std::set<string_view> given;
    for (const Output& input : block.inputs) given.insert(input.name);
    bool first = true;
    for (const Instruction& op : block.body) {
      if (op.kind != OpKind::kCall)
        return Fail(block, absl::StrCat("runs ", string(OpName(op.kind)), " beside the layers of its stage"),
                    op.origin);
      const bool makes = op.frame == module_.name + ".embed";  // the stream starts here
      for (size_t i = 0; i < op.inputs.size(); ++i) {
        const bool streams = i == 0 && !makes;
        if (streams && (stream.size() != 1 || op.inputs[0] != stream[0])) {
          return Fail(block, absl::StrCat("hands ", op.inputs[0], " to ", op.frame, ", not what the layer before made"),
                      op.origin);
        }
        if (streams || given.contains(op.inputs[i])) continue;
        return Fail(block, absl::StrCat("hands ", op.inputs[i], " to ", op.frame, ", a value of a layer"), op.origin);
      }
      if (makes && !first) return Fail(block, absl::StrCat("runs ", op.frame, " behind another layer"), op.origin);
      first = false;
      stream.clear();
      for (const Output& output : op.outputs) stream.push_back(output.name);
    }
    if (block.outputs != stream) Fail(block, "hands on another value than its last layer makes");
  }

  const PlanIndex& index_;
  const Module& module_;
  std::vector<Violation>& violations_;
  const ModelNumbers numbers_;
  std::map<char, PieceGraph> graphs_;          // by layer kind; '<': embedding, '>': head
  std::map<string, char, std::less<>> kinds_;  // by frame
  std::set<std::pair<const Block*, char>> seen_, resharded_;
};

}  // namespace

std::vector<Violation> VerifyForwardGraphs(const PlanIndex& index, const std::vector<MicrobatchCalls>& microbatches) {
  std::vector<Violation> violations;
  std::map<string_view, ModuleGraphs> modules;
  for (const Module& module : index.plan().modules) {
    const ModelStatement* statement = StatementOf(module.kind);
    if (statement) modules.try_emplace(module.name, index, module, *statement, violations);  // else VerifyModules
  }
  for (const FramePair& pair : PairsOf(microbatches)) {
    for (const Block* block : {pair.forward, pair.backward}) {
      if (!block || pair.frame.starts_with(block->module + ".")) continue;
      violations.push_back(
          {"V11", absl::StrCat("block ", block->name, " of ", block->module, " runs for frame ", string(pair.frame)),
           index.OriginOf(-1, block->origin, index.module(block->module))});
    }
    const auto module = pair.forward ? modules.find(pair.forward->module) : modules.end();
    if (module == modules.end()) continue;
    module->second.Check(pair);
    for (const Block* block : {pair.forward, pair.backward}) {
      if (block) module->second.Reshards(*block, pair.frame);
    }
  }
  for (const Role& role : index.plan().roles) {
    for (const Instruction& op : role.step) {
      const Block* block = op.kind == OpKind::kCall ? index.block(op.block) : nullptr;
      const auto module = block ? modules.find(block->module) : modules.end();
      if (module == modules.end() || !module->second.IsPiece(op.frame)) continue;
      violations.push_back({"V11", absl::StrCat("role ", role.name, " calls ", op.frame, " outside its stage"),
                            index.OriginOf(op.origin, role.origin, index.module(block->module))});
    }
  }
  return violations;
}

}  // namespace planwright
