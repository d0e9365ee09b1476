// Walks a role's lists as they are written: calls inside calls, names in maps, and values that live while a name refers
// to them. Slow and plain; it judges planner/plan/link.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

class NaiveProgram {
 public:
  struct Value {
    int number = 0;  // unique among all values
    const ValueType* type = nullptr;
    bool communicated = false, kept = false;  // made by a communication; kept by a frame
    std::map<int, const Value*>& alive;

    Value(int n, const ValueType* t, bool c, std::map<int, const Value*>& all)
        : number(n), type(t), communicated(c), alive(all) {
      alive[n] = this;
    }
    ~Value() { alive.erase(number); }
    Value(const Value&) = delete;
  };
  using Names = std::map<std::string, std::shared_ptr<Value>>;
  struct Visit {
    const Instruction* instruction = nullptr;
    const Block* block = nullptr;  // null: the role's own list
    std::string frame;
    int microbatch = -1;
    const Names* names = nullptr;  // after the instruction, before it frees values
    int depth = 0;
  };

  // Calls `visit` for every instruction except calls, after its outputs were made. alive() then still has the values
  // that the instruction frees.
  NaiveProgram(const Plan& plan, std::function<void(const Visit&)> visit) : plan_(plan), visit_(std::move(visit)) {}

  void Run(const std::vector<Instruction>& list) {
    Names names;
    Body(list, nullptr, "", -1, 0, names);
  }

  // Values that have a name, by number.
  const std::map<int, const Value*>& alive() const { return alive_; }

 private:
  void Body(const std::vector<Instruction>& body, const Block* block, const std::string& frame, int microbatch,
            int depth, Names& names) {
    for (const Instruction& instruction : body) {
      if (instruction.kind == OpKind::kCall) {
        Call(instruction, frame, microbatch, depth, names);
      } else {
        for (const Output& output : instruction.outputs) {
          if (IsStateName(output.name)) continue;
          names[output.name] = std::make_shared<Value>(++count_, &output.type,
                                                       OpClassOf(instruction.kind) == OpClass::kCommunication, alive_);
        }
        visit_({&instruction, block, frame, microbatch, &names, depth});
      }
      for (const std::string& name : instruction.frees) names.erase(name);
    }
  }

  void Call(const Instruction& call, const std::string& outer_frame, int outer_microbatch, int depth, Names& names) {
    const Block& block = *plan_.FindBlock(call.block);
    const std::string frame = call.frame.empty() ? outer_frame : call.frame;
    const int microbatch = call.microbatch >= 0 ? call.microbatch : outer_microbatch;
    Names inner;
    for (size_t i = 0; i < block.inputs.size(); ++i) inner[block.inputs[i].name] = names.at(call.inputs[i]);
    for (const Output& take : block.takes) {
      auto kept = frames_[{frame, microbatch}].extract(take.name);
      inner[take.name] = kept.mapped();
    }
    Body(block.body, &block, frame, microbatch, depth + 1, inner);
    for (size_t i = 0; i < block.outputs.size(); ++i) names[call.outputs[i].name] = inner.at(block.outputs[i]);
    for (const std::string& name : block.saved) {
      inner.at(name)->kept = true;
      frames_[{frame, microbatch}][name] = inner.at(name);
    }
  }

  const Plan& plan_;
  std::function<void(const Visit&)> visit_;
  int count_ = 0;
  std::map<int, const Value*> alive_;  // declared before its users, so that it outlives them
  std::map<std::pair<std::string, int>, Names> frames_;
};

}  // namespace planwright::testing
