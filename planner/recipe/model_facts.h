// What a recipe says of a model, whatever its kind. Rooms after `recipe` read models only through this page: they name
// constants ("moe.top_k") and letters of layers. So a new kind of model is keys, a reader, its lines in model_facts.cc
// and a statement.
#pragma once

#include <string>
#include <string_view>

#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/fill_defaults.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// A bug if the kind has none: the reader leaves models of unknown kinds out.
const ModelStatement& StatementOfModel(const ModelRecipe& model);

// Whether the model is a language model. Every other one is an encoder, also one that could not be read.
bool CarriesLoss(const ModelRecipe& model);

// The first module with a language model; null if there is none.
const ModuleRecipe* LanguageOf(const Recipe& recipe);

// A letter for each layer, with `|` and `/` as the grammar of patterns has them (compile/model/layer_pattern.h). For a
// model whose recipe gives only the number of its layers: their letter, as often, at the place of the number.
Located<std::string> PatternOf(const ModelRecipe& model);

// Whether the recipe gives the sizes of layers of this kind. If not, the model must not have any.
bool GivesLayer(const ModelRecipe& model, char letter);

// Whether a layer of the pattern has experts, and whether the recipe gives the sizes of layers that have: those may be
// there without such a layer.
bool HasExperts(const ModelRecipe& model);
bool GivesExperts(const ModelRecipe& model);

// Every number of the model, and every choice that is one of its constants, as 0 or 1. Named as constants are, by keys
// and sections: "mamba.heads". Sections that the recipe does not have are included, with their defaults. A choice that
// has no default and is not made is not there.
LocatedNumbers NumbersOf(const ModelRecipe& model);

// The number of this name. It must be there, and of this type.
Located<int64_t> SizeOf(const LocatedNumbers& numbers, std::string_view name);
Located<double> RealOf(const LocatedNumbers& numbers, std::string_view name);

}  // namespace planwright
