// The tensors that a model of these sizes has in a Hugging Face folder, and whether a folder has them. What
// `plan import` promises, `initialize.from` then finds.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "planner/exchange/findings.h"
#include "planner/exchange/folder_names.h"
#include "planner/exchange/said_model.h"

namespace planwright {

// A tensor of a folder, as the header of its file has it.
using TensorShapes = std::map<std::string, std::vector<int64_t>>;  // by name

std::string ShapeText(const std::vector<int64_t>& shape);  // "[4, 8]"

// Why the model is beyond what is expanded here; empty: it is not. Sizes are a stranger's claims, so this comes first.
std::string SizesTooLarge(const SaidModel& model);

// Names and shapes, in the form of which the folder has the most (`has`); without one, in the first. Tensors that files
// need not have, such as a final norm, are not among them.
TensorShapes ExpectedTensors(const SaidModel& model, const ShapeInFolder& has = {});
// The names of those that are no parameters: they are not trained.
std::set<std::string> ExpectedBuffers(const SaidModel& model, const ShapeInFolder& has);

// A problem for each tensor that is missing, has another shape, or is not known, and for each line of a form that does
// not fit. Tensors that are known and not
// trained become notes, of one line each kind.
void CompareTensors(const SaidModel& model, const TensorShapes& found, Findings& findings);

}  // namespace planwright
