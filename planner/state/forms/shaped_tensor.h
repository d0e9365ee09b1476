// One tensor of files: its shape, and where each of its parameters lies in it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/state/forms/disk_tensors.h"

namespace planwright {

// What is wrong with a line `tensor`, at a word of it.
TextProblem TensorProblem(const StatedTensor& tensor, std::string_view word, std::string message);

// The tensor that the line makes of these parameters of the module, without a name, and of parameters with experts all
// pieces, also where each expert has a tensor of its own. None: they do not fit together, and a problem says why.
std::optional<DiskTensor> ShapedTensor(const StatedTensor& tensor, const Module& module,
                                       const std::vector<int>& parameters, const ModelNumbers& numbers,
                                       TextProblems& problems);

}  // namespace planwright
