// Whether the numbers of a source are within the range of the narrower type that a run keeps them in: what is beyond it
// would become infinite.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "planner/state/checkpoint/element_reader.h"

namespace planwright {

// The first finite number of type `from` that is infinite when it is rounded to `to`, fp64 to bf16 by way of fp32.
// None: there is none, or `to` is no narrower. The bytes may lie at any address.
std::optional<int64_t> FirstTooLarge(DType from, std::span<const std::byte> bytes, DType to);

// Of what the reader has given for `runs` of a tensor: OK, or InvalidArgument, "FILE: tensor KEY: element N is too
// large for bf16".
absl::Status CheckRange(const ElementReader& reader, const std::string& key, const std::vector<ElementRun>& runs,
                        std::span<const std::byte> bytes, DType to);

}  // namespace planwright
