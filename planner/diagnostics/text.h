// Joining text. Debian's Abseil has a string_view of its own, so that absl::StrCat takes no std::string_view; these do.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace planwright {

template <typename T>
absl::AlphaNum Piece(const T& part) {
  if constexpr (std::is_same_v<T, std::string_view>) {
    return absl::AlphaNum(absl::string_view(part.data(), part.size()));
  } else {
    return absl::AlphaNum(part);
  }
}

// Cat("rank ", 3, " of ", name): texts and numbers as one text.
template <typename... Parts>
std::string Cat(const Parts&... parts) {
  std::string text;
  (absl::StrAppend(&text, absl::string_view(Piece(parts).Piece())), ...);
  return text;
}

template <typename... Parts>
void Append(std::string& text, const Parts&... parts) {
  text += Cat(parts...);
}

}  // namespace planwright
