// Which instructions of a program are done before another starts: those before it on its stream, what it waits for, and what came before that.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

class HappensBefore {
 public:
  // An event counts from where it is signalled on in the list; one that is signalled later, or never, orders nothing here (V3 refuses it).
  explicit HappensBefore(const std::vector<const Instruction*>& program);

  // Whether instruction `first` is done when `second` starts. Places in the program.
  bool Ordered(int first, int second) const;

 private:
  std::map<std::string, int> stream_ids_;
  std::vector<int> stream_;              // of each instruction
  std::vector<std::vector<int>> known_;  // of each instruction and stream: the last place known to be done when it starts, or -1
};

}  // namespace planwright
