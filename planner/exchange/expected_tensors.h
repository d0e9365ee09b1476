// The tensors that a model of these sizes has in a Hugging Face folder, and whether a folder has them. What
// `plan import` promises, `initialize.from` then finds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "planner/exchange/findings.h"
#include "planner/exchange/model_sizes.h"

namespace planwright {

// A tensor of a folder, as the header of its file has it.
using TensorShapes = std::map<std::string, std::vector<int64_t>>;  // by name

std::string ShapeText(const std::vector<int64_t>& shape);  // "[4, 8]"

// Why the model is beyond what is expanded here; empty: it is not. Sizes are a stranger's claims, so this comes first.
std::string SizesTooLarge(const ModelSizes& sizes);

// Names and shapes. A final norm is not among them: published files do not store it.
TensorShapes ExpectedTensors(const ModelSizes& sizes);

// A problem for each tensor that is missing, has another shape, or is not known. Tensors that are known and not
// trained become notes, of one line each kind.
void CompareTensors(const ModelSizes& sizes, const TensorShapes& found, Findings& findings);

}  // namespace planwright
