// V4 between streams: what one stream makes, another reads only after it is done, and frees only after all have read it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/instruction.h"
#include "planner/verify/happens_before.h"

namespace planwright {

// Follows the values of one list of instructions, the body of a block or a list of a role. Values of state ("%...", "$...") are VerifyUpdates'.
class StreamValues {
 public:
  explicit StreamValues(const std::vector<Instruction>& list);

  // The next instruction of the list; what is wrong with it, or "".
  std::string Step(const Instruction& instruction);
  // At the end of a block: its caller knows of its main stream only, so whatever touches values is done before that ends. "" if so.
  std::string End() const;

 private:
  std::string Read(const Instruction& instruction, const std::string& value);
  std::string Free(const Instruction& instruction, const std::string& value) const;

  struct Value {
    int made = -1;  // -1: before the list
    std::vector<int> readers;
  };

  HappensBefore order_;
  bool several_ = false;  // streams; with one the order of the list says it all
  int place_ = -1, last_on_main_ = -1;
  std::map<std::string, Value> values_;
  std::map<int, std::string> beside_;  // instructions off the main stream that touch values: which
};

}  // namespace planwright
