// The documents of a source of tokens: Megatron's PATH.idx and PATH.bin (docs/training/data_formats.md#megatron). Text
// alone; every token is learnt. A document is its sequences, one after the other; one without tokens is left out.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "planner/samples/documents.h"

namespace planwright {

// `path`: PATH. All of PATH.idx is checked, and compared with the size of PATH.bin; the ids of a document are compared
// with `vocabulary` and `image_tokens`, which no text has, when it is read. InvalidArgument names the file and what is
// wrong with it.
absl::StatusOr<std::unique_ptr<Documents>> OpenTokenDocuments(const std::string& path, int64_t vocabulary,
                                                              std::set<int64_t> image_tokens);

}  // namespace planwright
