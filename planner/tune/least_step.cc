// The bounds of QuickSteps that need no stages put together.
#include <algorithm>
#include <array>

#include "planner/tune/quick_step.h"

namespace planwright {

double QuickSteps::LeastStep(size_t m, const ModuleChoice& choice, int64_t samples, int64_t microbatches) {
  const ModuleCosts* costs = pieces_.Of(m, choice, samples, choice.first_rank % node_);
  const std::vector<int>& stage_of = SplitOf(m, choice);
  if (!costs || stage_of.empty()) return 0;
  const auto length = [](const PieceCost& piece) {
    return piece.forward.main_main + (piece.backward ? piece.backward->main_main : 0);
  };
  std::array<double, 256> of_letter{};
  for (const auto& [letter, piece] : costs->layers) of_letter[static_cast<unsigned char>(letter)] = length(piece);
  double least = 0, before = 0;
  size_t layer = 0;
  for (int64_t s = 0; s < choice.pp; ++s) {
    double stage = s == 0 ? length(costs->embed) : 0;
    for (; layer < stage_of.size() && stage_of[layer] == s; ++layer)
      stage += of_letter[static_cast<unsigned char>(letters_[m][layer])];
    if (s + 1 == choice.pp) stage += length(costs->head);
    if (s * (choice.ranks / choice.pp) % node_ != 0) continue;
    least = std::max(least, before + static_cast<double>(microbatches) * stage);
    before += stage;
  }
  return least;
}

double QuickSteps::LeastOfMany(const ModuleChoice& choice, int64_t samples, int64_t microbatches) {
  constexpr double kRounded = 0.995;  // rows of experts are whole numbers
  if (measured_ || samples <= 2) return 0;
  const double one = LeastStep(language_, choice, 1, microbatches), two = LeastStep(language_, choice, 2, microbatches);
  return one > 0 ? kRounded * (two + static_cast<double>(samples - 2) * std::max(0.0, two - one)) : 0;
}

double QuickSteps::LeastOnRanks(int64_t ranks) {
  const ModuleCosts* costs = measured_ ? nullptr : pieces_.Of(language_, ModuleChoice{}, 1, 0);
  if (!costs) return 0;
  double sum = costs->embed.products + costs->head.products;
  for (char letter : letters_[language_]) sum += costs->layers.at(letter).products;
  return sum * static_cast<double>(*tuned_.recipe.batch.global_samples) / static_cast<double>(ranks);
}

}  // namespace planwright
