// A module with sizes of which no two are equal by accident: every constant is another prime, multiplied by what lines
// `needs` of the statement ask for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

// The size of an axis that cuts sizes: a prime that no constant is. Where all axes have these sizes, each divides what
// `needs` says, and nothing else but by accident.
int PrimeOf(Axis axis);

// By name ("embed", "M"): the pieces of a statement.
std::map<std::string, const StatedPiece*> PiecesOf(const ModelStatement& statement);

// The letter of the layers that a piece of this name is of; 0: it is no layer.
char KindOfPiece(const std::string& name);

// A module with `copies` layers of each kind, and with all axes 1.
Module PrimeModule(const ModelStatement& statement, int copies);

// The constants of which both values are tried: flags that a module may lack, and what conditions and settings name and
// may be 0.
std::vector<const StatedConstant*> TriedConstants(const ModelStatement& statement);

// In every case of these constants, each of which keeps the lines `needs` of that case.
std::vector<Module> PrimeModules(const ModelStatement& statement, int copies);

// The module with each combination of both values of these constants.
std::vector<Module> InEveryCase(const ModelStatement& statement, const Module& module);

}  // namespace planwright
