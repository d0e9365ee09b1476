// Walks one rank's program, instruction by instruction.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "executor/rank.h"
#include "executor/values.h"

namespace planwright::executor {

class ProgramWalker {
 public:
  explicit ProgramWalker(Rank& rank) : rank_(rank) {}

  // The role's setup, steps [first, rank.last_step], and teardown. Any failure is an ExitError that names rank, host, place,
  // instruction and recipe line.
  void Run(int64_t first_step);

 private:
  // One call of a block, or a role's own list.
  struct Scope {
    const Block* block = nullptr;
    std::string frame, path;
    CallContext call;
    int origin = -1;
    Values values;
  };

  void RunList(const std::vector<Instruction>& list, const std::string& name);
  void RunBody(const std::vector<Instruction>& body, Scope& scope);
  void RunOne(const Instruction& instruction, Scope& scope);
  void Call(const Instruction& instruction, Scope& scope);
  Tensors Compute(const Instruction& instruction, const Scope& scope);
  void Bind(const Instruction& instruction, Tensors outputs, Scope& scope);
  bool Probed(int64_t step) const;  // whether --probe keeps values of this step
  void KeepProbes(const std::vector<Output>& made, const Scope& scope);
  CallContext ContextOf(const Instruction& instruction, const Scope& scope) const;
  [[noreturn]] void Fail(const Instruction& instruction, const Scope& scope, size_t place, int status, const std::string& what);
  int OriginOf(const Instruction& instruction, const Scope& scope) const;
  const std::string& TextOf(const Instruction& instruction);

  Rank& rank_;
  SavedValues saved_;
  std::unordered_map<const Instruction*, std::string> texts_;
};

}  // namespace planwright::executor
