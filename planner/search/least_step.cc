// The bounds of QuickSteps that need no stages put together.
#include <algorithm>
#include <array>
#include <limits>

#include "planner/predict/estimate/memory.h"
#include "planner/search/quick_step.h"

namespace planwright {
namespace {

constexpr double kRounded = 0.995;  // rows of experts are whole numbers

PartCost SecondsOf(const PieceCost& piece) {
  PartCost part{.forward = piece.forward.main_main};
  if (piece.backward) part.backward = piece.backward->main_main, part.work = piece.backward->work;
  return part;
}

double Sum(const PartCost& part) { return part.forward + part.backward; }

// The costs of `samples`, if those of one and of two are `one` and `two`.
double Extrapolated(double one, double two, int64_t samples) {
  return kRounded * (two + static_cast<double>(samples - 2) * std::max(0.0, two - one));
}

}  // namespace

double QuickSteps::LeastStep(size_t m, const ModuleChoice& choice, int64_t samples, int64_t microbatches) {
  const ModuleCosts* costs = pieces_.Of(m, choice, samples, choice.first_rank % node_);
  const std::vector<int>& stage_of = SplitOf(m, choice);
  if (!costs || stage_of.empty()) return 0;
  std::array<double, 256> of_letter{};
  for (const auto& [letter, piece] : costs->layers)
    of_letter[static_cast<unsigned char>(letter)] = Sum(SecondsOf(piece));
  double least = 0, before = 0;
  size_t layer = 0;
  for (int64_t s = 0; s < choice.pp; ++s) {
    double stage = s == 0 ? Sum(SecondsOf(costs->embed)) : 0;
    for (; layer < stage_of.size() && stage_of[layer] == s; ++layer)
      stage += of_letter[static_cast<unsigned char>(letters_[m][layer])];
    if (s + 1 == choice.pp) stage += Sum(SecondsOf(costs->head));
    if (s * (choice.ranks / choice.pp) % node_ != 0) continue;
    least = std::max(least, before + static_cast<double>(microbatches) * stage);
    before += stage;
  }
  return least;
}

double QuickSteps::LeastOfMany(const ModuleChoice& choice, int64_t samples, int64_t microbatches) {
  if (measured_ || samples <= 2) return 0;
  const double one = LeastStep(language_, choice, 1, microbatches), two = LeastStep(language_, choice, 2, microbatches);
  return one > 0 ? Extrapolated(one, two, samples) : 0;
}

// The first ranks of stages that lie differently in their nodes.
std::vector<int64_t> QuickSteps::PlacesOf(const ModuleChoice& choice) const {
  std::vector<int64_t> ranks;
  for (int64_t s = 0; s < choice.pp; ++s) {
    const int64_t rank = choice.first_rank + s * (choice.ranks / choice.pp);
    const auto alike = [&](int64_t known) { return known % node_ == rank % node_; };
    if (std::none_of(ranks.begin(), ranks.end(), alike)) ranks.push_back(rank);
  }
  return ranks;
}

std::optional<LayerCosts> QuickSteps::SecondsOfLayers(const ModuleChoice& choice, int64_t samples,
                                                      int64_t microbatches) {
  std::optional<LayerCosts> made;
  std::array<PartCost, 256> of_letter{};
  for (const int64_t rank : PlacesOf(choice)) {
    const ModuleCosts* costs = pieces_.Of(language_, choice, samples, rank % node_);
    if (!costs) return std::nullopt;
    const auto take = [&](const PieceCost& piece, PartCost& part) {
      const PartCost here = SecondsOf(piece);
      part.forward = made ? std::min(part.forward, here.forward) : here.forward;
      part.backward = made ? std::min(part.backward, here.backward) : here.backward;
      part.work = made ? std::min(part.work, here.work) : here.work;
    };
    LayerCosts all = made.value_or(LayerCosts{.stages = choice.pp, .microbatches = microbatches});
    take(costs->embed, all.embed), take(costs->head, all.head);
    for (const auto& [letter, piece] : costs->layers) take(piece, of_letter[static_cast<unsigned char>(letter)]);
    made = std::move(all);
  }
  if (!made) return made;
  made->beside = rates_.MostBeside();
  for (char letter : letters_[language_]) made->layers.push_back(of_letter[static_cast<unsigned char>(letter)]);
  return made;
}

double QuickSteps::LeastOfSplits(const ModuleChoice& choice, int64_t samples, int64_t microbatches, double most) {
  // One stage takes an equal part of all, at least.
  const auto share = [&](const LayerCosts& costs) {
    double all = Sum(costs.embed) + Sum(costs.head);
    for (const PartCost& layer : costs.layers) all += Sum(layer);
    return all / static_cast<double>(choice.pp) * static_cast<double>(microbatches);
  };
  double least = 0;
  if (!measured_ && samples > 2) {
    const std::optional<LayerCosts> one = SecondsOfLayers(choice, 1, microbatches);
    std::optional<LayerCosts> many = one ? SecondsOfLayers(choice, 2, microbatches) : std::nullopt;
    if (many) {
      const auto extrapolate = [&](const PartCost& of_one, PartCost& part) {
        part.forward = Extrapolated(of_one.forward, part.forward, samples);
        part.backward = Extrapolated(of_one.backward, part.backward, samples);
      };
      extrapolate(one->embed, many->embed), extrapolate(one->head, many->head);
      for (size_t i = 0; i < one->layers.size(); ++i) extrapolate(one->layers[i], many->layers[i]);
      least = share(*many);
      if (least > most) return least;
      least = SplitBounds(*std::move(many), most).least();
      if (least > most) return least;
    }
  }
  const std::optional<LayerCosts> costs = SecondsOfLayers(choice, samples, microbatches);
  return costs ? std::max(least, share(*costs)) : least;
}

std::optional<LayerCosts> QuickSteps::CostsOfLayers(const ModuleChoice& choice, int64_t samples, int64_t microbatches) {
  std::optional<LayerCosts> made = SecondsOfLayers(choice, samples, microbatches);
  if (made) AddEnd(choice, *pieces_.Of(language_, choice, samples, choice.first_rank % node_), *made);
  return made;
}

void QuickSteps::AddEnd(const ModuleChoice& choice, const ModuleCosts& costs, LayerCosts& made) const {
  made.limit = limit_, made.each = limit_ > 0 ? kContextBytes : 0;
  const Grid grid = GridOf(choice);
  const std::string& letters = letters_[language_];
  std::map<GradientClass, int64_t> trained;  // of all parts
  int64_t out = 0, least_out = std::numeric_limits<int64_t>::max();
  const auto count = [&](const PieceCost& piece) {
    for (const auto& [kind, elements] : piece.trained) trained[kind] += elements;
    if (piece.backward) made.handed += std::max<int64_t>(0, -piece.forward.delta);
    out = std::max(out, piece.out);
    if (&piece != &costs.head) least_out = std::min(least_out, piece.out);
  };
  count(costs.embed), count(costs.head);
  for (char letter : letters) count(costs.layers.at(letter));
  // The last part of a stage hands its values on, and values between parts are counted with both.
  made.handed += out + 3 * costs.embed.out;
  made.hop = std::numeric_limits<double>::infinity();
  const int64_t ranks_of_stage = choice.ranks / choice.pp;
  for (int64_t s = 0; s + 1 < choice.pp; ++s) {
    const int64_t first = choice.first_rank + s * ranks_of_stage;
    made.hop = std::min(made.hop, ExchangeSeconds(least_out, first / node_ != (first + ranks_of_stage) / node_));
  }
  // Otherwise stages of other modules count, too.
  for (size_t m = 0; m < feeds_.size(); ++m) made.fills &= m == language_ || feeds_[m];
  // Reducing twice as much takes at most twice as long: by the time of all gradients each element takes so long.
  std::map<GradientClass, double> reduce;
  for (const auto& [kind, elements] : trained) {
    double& each = reduce.try_emplace(kind, std::numeric_limits<double>::infinity()).first->second;
    for (const int64_t rank : PlacesOf(choice)) {
      StageCost all;
      AddStates(grid, static_cast<int>(rank), {{kind, elements}}, all);
      each = std::min(each, all.reduce / static_cast<double>(std::max<int64_t>(1, elements)));
    }
  }
  const auto add = [&](const PieceCost& piece, PartCost& part) {
    StageCost alone;  // shards are rounded down, of a part as of a stage
    AddStates(grid, grid.first_rank, piece.trained, alone);
    part.states = alone.states + piece.untrained;
    part.kept = piece.backward ? std::max<int64_t>(0, piece.forward.delta) : 0;
    for (const auto& [kind, elements] : piece.trained) part.reduce += reduce.at(kind) * static_cast<double>(elements);
  };
  add(costs.embed, made.embed), add(costs.head, made.head);
  std::map<char, PartCost> of_letter;
  for (const auto& [letter, piece] : costs.layers) add(piece, of_letter[letter]);
  for (size_t i = 0; i < made.layers.size(); ++i) {
    const PartCost& end = of_letter.at(letters[i]);
    made.layers[i].states = end.states, made.layers[i].kept = end.kept, made.layers[i].reduce = end.reduce;
  }
  // For the slowest stage all ranks wait, and it takes no less than one with an equal part of all weights would.
  for (auto& [kind, elements] : trained) elements /= choice.pp;
  StageCost mean;
  AddStates(grid, grid.first_rank, trained, mean);
  const double beside = rates_.MostBeside();
  double stepped = std::max(mean.step, mean.gather);
  if (beside < 1) stepped = std::max(stepped, (mean.step + mean.gather) / (1 + beside));
  made.rest = mean.scale + stepped;
}

double QuickSteps::LeastOnRanks(int64_t ranks) {
  const ModuleCosts* costs = measured_ ? nullptr : pieces_.Of(language_, ModuleChoice{}, 1, 0);
  if (!costs) return 0;
  double sum = costs->embed.products + costs->head.products;
  for (char letter : letters_[language_]) sum += costs->layers.at(letter).products;
  return sum * static_cast<double>(*tuned_.recipe.batch.global_samples) / static_cast<double>(ranks);
}

}  // namespace planwright
