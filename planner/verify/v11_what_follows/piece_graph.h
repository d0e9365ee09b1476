// The graph of one piece for one module: its stated computes (model_statement.h), where `when` and `each` are resolved
// and values have numbers instead of names. Numbers, because blocks may use other names.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/plan/op_table.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// Keeps references: plan, module and statement must outlive it.
class PieceGraph {
 public:
  struct Compute {
    OpKind kind{};
    std::vector<int> inputs, outputs;  // values; inputs of an add ascend, because terms may come in any order
    std::vector<std::string> slots;    // that exist, without marks
    std::vector<std::pair<std::string_view, Attribute>> settings;
    std::string reads;  // the names of the inputs, for messages
  };

  // `evaluates`: as an evaluation runs it. It adds to no sum of the step and computes nothing that only such sums read.
  // Its head returns the loss of each token; that of a step does where steps add up losses by source, too.
  PieceGraph(const Plan& plan, const Module& module, const ModelNumbers& numbers, const StatedPiece& piece,
             bool evaluates = false);

  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }
  // The carry that input or output `i` is; "": none.
  std::string CarryOfInput(size_t i) const { return i < carried_inputs_.size() ? carried_inputs_[i] : ""; }
  std::string CarryOfOutput(size_t i) const { return i < carried_outputs_.size() ? carried_outputs_[i] : ""; }
  bool Takes(const std::string& carry) const;
  bool Gives(const std::string& carry) const;
  const std::vector<Compute>& computes() const { return computes_; }
  int counts() const { return counts_; }  // the value with the row counts of messages; -1: none

 private:
  int Define(const std::string& name) { return names_[name] = values_++; }
  std::vector<std::string> Expanded(const std::string& name) const;
  // Adds the values of these names, and which carries they are.
  void AddEnds(const std::vector<std::string>& names, const ModelNumbers& numbers, int64_t taps, bool are_inputs);
  Attribute Setting(const AttributeSpec& spec, const StatedSetting& setting, const ModelNumbers& numbers,
                    size_t encoder) const;
  void Add(const StatedPiece& piece, const StatedCompute& stated, const ModelNumbers& numbers, size_t encoder);
  void LeaveOutUnread();

  const Plan& plan_;
  const Module& module_;
  std::vector<const Bridge*> bridges_;
  std::map<std::string, int> names_;
  int values_ = 0, counts_ = -1;
  std::vector<int> inputs_, outputs_;
  std::vector<std::string> carried_inputs_, carried_outputs_;
  std::vector<Compute> computes_;
};

}  // namespace planwright
