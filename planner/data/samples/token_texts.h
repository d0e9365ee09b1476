// What tokens say, for people: the bytes of each. With tokenizer bytes an id is a byte; else the file pieces.json
// beside the shards, which planner/data/prepare_data writes, has the bytes of every id.
#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright {

inline constexpr const char* kPiecesFile = "pieces.json";

class TokenTexts {
 public:
  // Of ids that are bytes.
  TokenTexts() = default;
  // Of data with a tokenizer, for a source of its mixture. NotFound: no pieces.json is beside the
  // shards. InvalidArgument names the file: it is no list of texts whose characters are bytes.
  static absl::StatusOr<TokenTexts> Open(const DataPlan& data, const std::string& source);

  // The bytes of a token; nothing for an id that has none.
  std::string Bytes(int64_t token) const;

 private:
  bool bytes_ = true;
  std::vector<std::string> pieces_;
};

}  // namespace planwright
