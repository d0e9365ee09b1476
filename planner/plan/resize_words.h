// The words of data.resize and data.grid, in recipes, in plans and in statements of models.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

namespace planwright {

inline constexpr std::string_view kResizeWords[] = {"bilinear", "bicubic", "bicubic_8bit", "bilinear_8bit"};
inline constexpr std::string_view kGridWords[] = {"ceil", "round_half_even", "smart_resize", "square"};

inline bool IsResizeWord(std::string_view word) {
  return std::find(std::begin(kResizeWords), std::end(kResizeWords), word) != std::end(kResizeWords);
}
inline bool IsGridWord(std::string_view word) {
  return std::find(std::begin(kGridWords), std::end(kGridWords), word) != std::end(kGridWords);
}

}  // namespace planwright
