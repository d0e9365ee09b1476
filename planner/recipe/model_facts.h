// What a recipe says of a model, whatever its kind. Rooms after `recipe` know no kind: they ask the statement of a
// model, and name constants ("moe.top_k").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/statement/model_statement.h"
#include "planner/recipe/recipe.h"

namespace planwright {

// The kinds of models, those of language models first: so pages list their layers.
std::vector<const ModelStatement*> LanguageKindsFirst();
// The kinds of language models, for messages: "hybrid_lm".
std::string LanguageKinds();

// A bug if the kind has none: the reader leaves models of unknown kinds out.
const ModelStatement& StatementOfModel(const ModelRecipe& model);

// Whether the model is a language model. Every other one is an encoder, also one that could not be read.
bool CarriesLoss(const ModelRecipe& model);

// The first module with a language model; null if there is none.
const ModuleRecipe* LanguageOf(const Recipe& recipe);

// Whether the recipe gives the sizes of layers of this kind. If not, the model must not have any.
bool GivesLayer(const ModelRecipe& model, char letter);

// Whether a layer of the pattern has experts, and whether the recipe gives the sizes of layers that have: those may be
// there without such a layer.
bool HasExperts(const ModelRecipe& model);
bool GivesExperts(const ModelRecipe& model);

// The choice of this name, which models of this kind must have.
const StatedKey& ChoiceOf(const ModelRecipe& model, std::string_view name);

// The number of a word of the choice, which it must have.
int64_t NumberOfWord(const StatedKey& choice, std::string_view word);

// A model of which a recipe says nothing but its kind.
ModelRecipe DefaultModel(const std::string& kind);

// The number of this name. It must be there, and of this type.
Located<int64_t> SizeOf(const LocatedNumbers& numbers, std::string_view name);
Located<double> RealOf(const LocatedNumbers& numbers, std::string_view name);

}  // namespace planwright
