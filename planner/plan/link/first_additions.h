// Which additions to gradients are the first of their step. Where such an addition writes its terms over what the step
// before has left, nothing has to clear the gradient first (begin_step).
#pragma once

#include <cstddef>
#include <vector>

#include "planner/plan/link/linked_program.h"

namespace planwright {

class FirstAdditions {
 public:
  explicit FirstAdditions(const LinkedProgram& program);

  // Whether the entry's gradients got nothing before in the step, and its kind writes what it adds then: matrix
  // products, which give every element, of linear layers without a bias and of experts.
  bool Writes(size_t entry) const { return writes_[entry]; }
  // Whether the gradient of a storage is written by such an entry: index in Plan::modules, and in Module::storages.
  bool IsWritten(size_t module, size_t storage) const { return written_[module][storage]; }

 private:
  std::vector<bool> writes_;                // by entry of the program
  std::vector<std::vector<bool>> written_;  // by module and storage
};

}  // namespace planwright
