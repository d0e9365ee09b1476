// Tensors that published files have and that no plan trains (docs/weights.md#passed-through). They are listed as passed
// through; all else that no part of a plan takes is an error. `plan export` copies them from the source.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace planwright {

struct KnownExtra {
  // The name, in which * stands for any text. It may follow a prefix of the model ("vision_model.").
  std::string_view pattern;
  std::string_view what;  // "audio encoder"
  std::string_view who;   // who needs it
  // What the model here does as if the tensor had these numbers, so it must have them.
  enum class Numbers { kAny, kOnes, kPixelMean, kPixelDeviation } numbers = Numbers::kAny;
};

std::span<const KnownExtra> KnownExtras();
// Null: the name is none of them.
const KnownExtra* FindKnownExtra(std::string_view name);

// A name under which others publish a tensor of ours. Loading takes either; export writes `published`.
struct OtherName {
  std::string_view ours, published;  // beginnings of names
};
std::span<const OtherName> OtherNames();

}  // namespace planwright
