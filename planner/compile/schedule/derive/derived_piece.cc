#include "planner/compile/schedule/derive/derived_piece.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planwright {

size_t DerivedPiece::Add(DerivedValue value) {
  const auto taken = [&](const std::string& name) {
    return std::any_of(values.begin(), values.end(), [&](const DerivedValue& other) { return other.name == name; });
  };
  const std::string wanted = value.name;
  for (int number = 2; taken(value.name); ++number) value.name = absl::StrCat(wanted, "_", number);
  values.push_back(std::move(value));
  return values.size() - 1;
}

std::optional<size_t> DerivedPiece::MakerOf(size_t value) const {
  for (size_t at = 0; at < forward.size(); ++at) {
    const std::vector<size_t>& made = forward[at].outputs;
    if (std::find(made.begin(), made.end(), value) != made.end()) return at;
  }
  return std::nullopt;
}

}  // namespace planwright
