// Joins texts and numbers. Like absl::StrCat, but also takes std::string_view: Abseil as Debian builds it has a
// string_view of its own, and absl::StrCat then does not accept the standard one.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace planwright {

// One argument as Abseil takes it.
template <typename T>
absl::AlphaNum Piece(const T& part) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return absl::AlphaNum(absl::string_view(part.data(), part.size()));
  } else {
    return absl::AlphaNum(part);
  }
}

// Cat("rank ", 3, " of ", name)
template <typename... Parts>
std::string Cat(const Parts&... parts) {
  std::string text;
  (absl::StrAppend(&text, absl::string_view(Piece(parts).Piece())), ...);
  return text;
}

// Adds the parts to the end of `text`.
template <typename... Parts>
void Append(std::string& text, const Parts&... parts) {
  text += Cat(parts...);
}

}  // namespace planwright
