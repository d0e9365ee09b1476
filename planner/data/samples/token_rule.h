// Which ids a source of tokens may have.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

struct TokenRule {
  int64_t vocabulary = 0;             // ids are below it
  std::vector<int64_t> image_tokens;  // ascending; no text has them
};

TokenRule TokenRuleOf(const DataPlan& data);

// What is wrong with the first wrong id, a sentence for a message that names the document; empty: nothing. The ids are
// those of a document from its token `first` on.
std::string WrongId(const TokenRule& rule, std::span<const int64_t> ids, int64_t first);

}  // namespace planwright
