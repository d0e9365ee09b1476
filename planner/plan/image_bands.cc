#include "planner/plan/image_bands.h"

namespace planwright {

std::vector<std::vector<ImageRows>> DealBands(const std::vector<std::array<int64_t, 2>>& grids, int64_t factor,
                                              int64_t cp) {
  std::vector<std::vector<ImageRows>> parts(static_cast<size_t>(cp));
  if (cp == 1) {
    for (size_t image = 0; image < grids.size(); ++image)
      parts[0].push_back({static_cast<int64_t>(image), 0, grids[image][0]});
    return parts;
  }
  int64_t lane_tokens = 0;  // R of the formula
  for (const auto& [rows, columns] : grids) lane_tokens += (rows / factor) * (columns / factor);
  int64_t a = 0;  // the band makes the image tokens [a, b)
  for (size_t image = 0; image < grids.size(); ++image) {
    const auto [rows, columns] = grids[image];
    for (int64_t first = 0; first < rows; first += factor) {
      const int64_t b = a + columns / factor;
      std::vector<ImageRows>& part = parts[static_cast<size_t>(cp * (a + b) / (2 * lane_tokens))];
      if (part.empty() || part.back().image != static_cast<int64_t>(image))
        part.push_back({static_cast<int64_t>(image), first, 0});
      part.back().count += factor;
      a = b;
    }
  }
  return parts;
}

}  // namespace planwright
