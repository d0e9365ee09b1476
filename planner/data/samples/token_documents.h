// The documents of a source of tokens: Megatron's PATH.idx and PATH.bin (docs/training/data_formats.md#megatron). Text
// alone; every token is learnt. A document is its sequences, one after the other; one without tokens is left out.
#pragma once

#include <memory>
#include <string>

#include "planner/data/samples/documents.h"
#include "planner/data/samples/token_idx.h"
#include "planner/data/samples/token_rule.h"

namespace planwright {

// `digest`: of the ids and of PATH.idx. The ids of a document are compared with `rule` when it is read.
std::unique_ptr<Documents> MakeTokenDocuments(TokenIdx idx, TokenRule rule, std::string digest);

}  // namespace planwright
