// Judges the statement of a model by itself, before any plan is made of it. Sizes are compared with every constant
// replaced by another prime, multiplied by what lines `needs` ask for, so that no two sizes are equal by accident.
#pragma once

#include <string>
#include <vector>

#include "planner/model/statement/model_statement.h"

namespace planwright::testing {

// What is wrong with a statement; empty: nothing.
//
//   - Operands of each compute have the number, the dims and the sizes that ops.def says. Values and slots are there,
//     once. Layers, embedding and head pass on one stream of one shape.
//   - Each slot is read by exactly one compute. Of each compute some result is read, returned, or counts messages, and
//     each input of a piece is read.
//   - A weight's segments are the `parts` of what reads it and of what reads its product. A cut is along a dim that may
//     be cut, the same for all weights of a compute, and lines `needs` make each axis divide it, and the heads and
//     groups that attributes count.
//   - Published names differ, and end as ops.def says where operands of an operation could be exchanged. Only an
//     encoder has a projection. Draws have as many numbers as their kind, formulas have values, settings are attributes
//     of their kind, and probes are of values of the piece.
std::vector<std::string> StatementProblems(const ModelStatement& statement);

// A module of a kind of model, with constants as described above, `copies` layers of each kind, and all axes 1.
Module PrimeModule(const ModelStatement& statement, int copies);

}  // namespace planwright::testing
