// Tensors that published files have and that no plan trains (docs/weights.md#passed-through). They are listed as passed
// through; all else that no part of a plan takes is an error. `plan export` copies them from the source. Dialects state
// them (`extra`).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "planner/state/dialect/dialect.h"

namespace planwright {

using KnownExtra = DialectExtra;

// Null: the name is none of them.
const KnownExtra* FindKnownExtra(std::string_view name);

// The numbers that the model here computes as if the tensor had them, one for all elements or one for each; none: any.
std::vector<double> NumbersOf(const KnownExtra& extra);

// A name under which others publish a tensor of ours. Loading takes either; export writes `published`.
struct OtherName {
  std::string ours, published;  // beginnings of names
};
std::span<const OtherName> OtherNames();
// What is said of a tensor of ours that files lack, whatever they call it; empty: nothing.
std::string HintIfMissing(const std::string& file_name);

}  // namespace planwright
