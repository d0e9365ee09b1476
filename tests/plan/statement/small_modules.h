// A small module of each kind of model, in which no two sizes, deviations or other numbers are equal: where one stands
// in place of another, it shows.
#pragma once

#include <string>
#include <vector>

#include "planner/plan/statement/model_statement.h"

namespace planwright::testing {

// The kinds of models that have a statement.
std::vector<std::string> ModelKinds();

// The module that `statement` makes of the small recipe of its kind; of a kind of tests, of constants that are primes.
// Layouts: tp, ep and expert_tp 2. The backbone of
// an encoder is frozen, and its projection is trained.
Module SmallModule(const ModelStatement& statement);

// The parameters of small modules as tables: published name, slot, shape, cut, draw, whether it is trained and whether
// it decays. Of a language model also where tp is above its key heads and does not divide its vocabulary.
std::string DrawTables(const ModelStatement& statement);

}  // namespace planwright::testing
