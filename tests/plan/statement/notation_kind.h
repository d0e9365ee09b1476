// A kind of models for tests, with what the notation of statements has and no kind of this program uses.
#pragma once

#include <string>

#include "planner/plan/statement/model_statement.h"

namespace planwright::testing {

const std::string& NotationText();
const ModelStatement& NotationStatement();

// The statement of this text, which must parse. `file`: what messages call it.
ModelStatement StatementOfText(const std::string& text);

// A statement by name: of a kind of this program, "notation", or "toy" (toy_kind.h). "adapted_hybrid_lm": that of a
// kind with adapters on some of its products, of joined weights too.
const ModelStatement& StatementNamed(const std::string& kind);

}  // namespace planwright::testing
