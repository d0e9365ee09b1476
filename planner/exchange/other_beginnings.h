// Tensors that a folder has under names that begin otherwise than those that a model of its type has, as other versions
// of a program write them.
#pragma once

#include <string>
#include <vector>

#include "planner/exchange/expected_tensors.h"

namespace planwright {

struct OtherBeginning {
  std::string theirs, ours;        // "visual.", "model.visual.": all that the names have in common, up to a dot
  std::vector<std::string> names;  // in the folder, at least four
};

// Those that explain names, the ones that explain the most first. `missing`: tensors that the model needs and the
// folder lacks; `unknown`: those that it has and no model of the type does; `extras`: those that nobody trains, whose
// names may begin with anything, and which are explained by beginnings of unknown ones alone. What is explained is
// taken out of all three. Shapes must be the same. Beginnings have no numbers of layers.
std::vector<OtherBeginning> TakeOtherBeginnings(TensorShapes& missing, TensorShapes& unknown, TensorShapes& extras);

}  // namespace planwright
