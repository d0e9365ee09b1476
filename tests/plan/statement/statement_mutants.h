// Statements with one mistake each, of the kinds that a person makes.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/statement/model_statement.h"

namespace planwright::testing {

struct StatementMutant {
  std::string piece, name;  // "M", "swaps the inputs 0 and 1 of gated_norm"
  ModelStatement statement;
  std::vector<StatedLine> lines;  // that are not as they were
};

// Every mutant that says something else than `statement`: two inputs, slots or results exchanged, one replaced by
// another or left out; a compute left out, of another kind, under another condition or with another setting; a weight
// left out, under another name, in another slot, of another form, with other sizes, segments, cut or draw; a number of
// the model made from another constant.
std::vector<StatementMutant> MutantsOf(const ModelStatement& statement);

// What a statement says, one fact on a line, in its notation. Lines of a piece begin with the piece's name, and lines
// of weights end with the prefix of their published files.
std::vector<std::string> StatementLines(const ModelStatement& statement);

}  // namespace planwright::testing
