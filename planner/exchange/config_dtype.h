// The words of a config.json that say as which type transformers loads weights: `dtype`, and `torch_dtype` of older
// releases. They stand at the top, and may stand in the objects of parts.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/instruction.h"

namespace planwright {

// "float32": a type as torch names it. Empty: it has none there.
std::string TorchName(DType dtype);

// The type that has every number of both, by their names in headers and as words: "BF16" and "F16" have "float32".
// Others than those of floating point change nothing.
std::string WordForBoth(const std::string& word, std::string_view header_type);

struct DtypeWord {
  std::string part;           // "text_config"; empty: at the top
  size_t first = 0, end = 0;  // of the word in the text, without quotes
  std::string word;           // "bfloat16", also of "torch.bfloat16"
};
// Those at the top and in objects under it, in the order of the text, which must be a JSON object as Python writes it.
std::vector<DtypeWord> DtypeWords(std::string_view text);

// The text with `whole` at the top, and `own` in these parts. What is said otherwise stays, byte by byte.
std::string WithDtypeWords(const std::string& text, const std::string& whole, const std::string& own,
                           const std::set<std::string>& parts);

}  // namespace planwright
