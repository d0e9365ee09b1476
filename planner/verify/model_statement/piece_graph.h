// What a piece of a model computes, as one module has it: conditions decided, encoders counted, values numbered
// (model_statement.h).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/verify/model_statement/model_statement.h"

namespace planwright {

// Keeps references: plan, module and statement must outlive it.
class PieceGraph {
 public:
  struct Compute {
    OpKind kind{};
    std::vector<int> inputs, outputs;  // of an add in ascending order: a sum of any order
    const std::vector<std::string>* slots = nullptr;
    std::vector<std::pair<std::string_view, Attribute>> settings;
    std::string reads;  // for messages
  };

  PieceGraph(const Plan& plan, const Module& module, const ModelNumbers& numbers, const StatedPiece& piece);

  const std::vector<int>& inputs() const { return inputs_; }
  const std::vector<int>& outputs() const { return outputs_; }
  const std::vector<Compute>& computes() const { return computes_; }
  int counts() const { return counts_; }  // -1: no message counts rows here
  const std::vector<std::vector<int64_t>>& reshards() const { return reshards_; }

 private:
  int Define(const std::string& name) { return names_[name] = values_++; }
  std::vector<std::string> Expanded(const std::string& name) const;
  Attribute Setting(const std::string& text, size_t encoder) const;
  void Add(const StatedCompute& stated, size_t encoder);

  const Plan& plan_;
  const Module& module_;
  std::vector<const Bridge*> bridges_;
  std::map<std::string, int> names_;
  int values_ = 0, counts_ = -1;
  std::vector<int> inputs_, outputs_;
  std::vector<Compute> computes_;
  std::vector<std::vector<int64_t>> reshards_;
};

}  // namespace planwright
