// Judges the statement of a model by itself, before any plan is made of it. Sizes are those of a module in which no two
// are equal by accident (prime_module.h).
#pragma once

#include "planner/plan/statement/model_statement.h"

namespace planwright {

// What is wrong with the lines of a statement together, in their order; empty: nothing. Pieces with a line that could
// not be read are left out, and all of it is if another line could not be.
//
//   - Each kind of layers has a line `layer` and a piece. Each constant is a key, is given, or is set by one choice,
//   whose
//     numbers it may have. Each key in a section has that section before it, which is of the constant's kind of layers.
//   - Each name in a formula is a number of the model, which each module with the piece has.
//   - Operands of each compute have the number, the dims and the sizes that ops.def says. Values and slots are there,
//     once. Layers, embedding and head pass on one stream of one shape.
//   - Each slot is read by exactly one compute. Of each compute some result is read, returned, or counts messages, and
//     each input of a piece is read.
//   - A weight's segments are the `parts` of what reads it and of what reads its product. A cut is along a dim that may
//     be cut, the same for all weights of a compute, and lines `needs` make each axis divide it, and the heads and
//     groups that attributes count.
//   - Whether a weight is there depends on constants and axes alone. All of this holds in every case of what `when`
//   asks for.
//   - Published names differ, and end as ops.def says where operands of an operation could be exchanged. Only an
//     encoder has a projection. Draws have as many numbers as their kind, formulas have values, settings are attributes
//     of their kind, and probes are of values of the piece.
//   - What blocks are derived with is there: operations have operands, and as many as layouts need, attributes have
//     their numbers, values of each encoder are read for each, weights that are trained get a gradient, parts and
//     counts are named, and the order of the forward has each compute behind what it reads.
TextProblems StatementProblems(const ModelStatement& statement);

}  // namespace planwright
