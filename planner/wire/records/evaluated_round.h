// Which round of an evaluation a rank is in, as its recorder has it in the path of each instruction: the walker writes
// it, `plan evaluate` reads how far it is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace planwright {

// ", held_out 3/10": the third of the set's rounds. `round`: from 0.
inline std::string EvaluatedRound(const std::string& set, int64_t round, int64_t rounds) {
  return absl::StrCat(", ", set, " ", round + 1, "/", rounds);
}

// The round, from 0, if the path is of this set.
inline std::optional<int64_t> ReadEvaluatedRound(std::string_view path, const std::string& set, int64_t rounds) {
  const std::string before = absl::StrCat(", ", set, " "), after = absl::StrCat("/", rounds);
  const size_t begin = path.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  path.remove_prefix(begin + before.size());
  int64_t round = 0;
  if (!absl::SimpleAtoi(std::string(path.substr(0, path.find(after))), &round)) return std::nullopt;
  return round - 1;
}

}  // namespace planwright
