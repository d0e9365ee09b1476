// What holds for the fields of a data section with sources, wherever they come from: a recipe or a plan.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

// The sum of the weights of a mixture: after so many samples it repeats which source is next.
inline constexpr int64_t kLongestPeriod = 1'000'000;
inline constexpr size_t kMostSources = 1024;

// Names become names of files: 1 to 64 letters, digits, `_`, `-` and `.`, which does not begin one.
bool IsSourceName(std::string_view name);

// SHA-256: 64 digits 0 to 9 and a to f.
bool IsDigest(std::string_view text);

// The documents that are shuffled together: 0 for `all` and `none`. -1: `shuffle` is neither a word nor a number
// from 1.
int64_t ShuffledTogether(std::string_view shuffle);

// The largest number that divides all weights; 0 without any.
int64_t CommonDivisor(const std::vector<SourcePlan>& sources);

// Whether text of this data is ids that were made before.
inline bool TextIsIds(const DataPlan& data) { return RowOf(data.kind).tokenized && data.tokenizer == "ids"; }

// What is wrong with the fields that only `sources` have, and with `balance`; empty if nothing is.
std::string SourcesProblem(const DataPlan& data);

}  // namespace planwright
