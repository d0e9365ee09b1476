#include "planner/search/layout_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

constexpr size_t kMostOthers = 32;  // lists of options that are kept
// Of all ways to give layers to stages those are listed at once whose bounds differ by so much, and not more.
constexpr double kBand = 1.01;
constexpr size_t kMostOfBand = 20'000;

int64_t LanesOf(const ModuleChoice& choice) { return choice.ranks / (choice.tp * choice.cp * choice.pp); }

const std::vector<std::string> kRecomputesNone = {"none"}, kRecomputesAll = {"full"};

// Where the ways that recompute as `words` say are, among those from `first` up to `end`; `end`: there is none.
size_t FindWay(const std::vector<ModuleChoice>& ways, size_t first, size_t end, const std::vector<std::string>& words) {
  while (first < end && ways[first].recompute != words) ++first;
  return first;
}

}  // namespace

LayoutTree::LayoutTree(const TunedRecipe& tuned, Space& space, TuneCounts& counts)
    : tuned_(tuned), space_(space), counts_(counts), rates_(RatesOf(tuned.cluster)), quick_(tuned, rates_),
      budget_(tuned.recipe), placed_(space.placings().size()) {
  for (size_t m = 0; m < tuned.recipe.modules.size(); ++m) {
    if (CarriesLoss(tuned.recipe.modules[m].model)) language_ = m;
  }
}

const std::vector<std::vector<ModuleChoice>>& LayoutTree::LayoutsOf(size_t p) {
  Placed& placed = placed_[p];
  if (!placed.layouts.empty()) return placed.layouts;
  placed.listed = static_cast<double>(space_.steps().size());
  for (size_t m = 0; m < tuned_.recipe.modules.size(); ++m) {
    const std::vector<ModuleChoice>& layouts = placed.layouts.emplace_back(space_.LayoutsOf(m, space_.placings()[p]));
    double ways = 0;
    for (const ModuleChoice& layout : layouts) ways += static_cast<double>(space_.CountWays(m, layout));
    // Refused layouts count with as many ways as an allowed one has on average.
    const double each = layouts.empty() ? 1 : ways / static_cast<double>(layouts.size());
    placed.listed *= static_cast<double>(space_.listed()) * each;
    if (m != language_) placed.others *= ways;
  }
  placed.listed = std::round(placed.listed);
  return placed.layouts;
}

int64_t LayoutTree::MicrobatchesOf(size_t micro, const ModuleChoice& language) {
  // Of other modules at least one stage each.
  const int64_t stages = static_cast<int64_t>(tuned_.recipe.modules.size()) + language.pp - 1;
  return budget_.MicrobatchesOf(space_.micro_samples()[micro], LanesOf(language), stages, 1);
}

ModuleChoice LayoutTree::ChoiceOf(size_t p, size_t m, LayoutIndex at) {
  return space_.WaysOf(m, LayoutsOf(p)[m][at.layout])[at.way];
}

LayoutOption LayoutTree::OptionOf(size_t m, const ModuleChoice& way, LayoutIndex at, int64_t samples,
                                  int64_t microbatches) {
  LayoutOption option{at, way.pp, quick_.StagesOf(m, way, samples), 0};
  option.least = option.stages.microbatch * static_cast<double>(microbatches) + option.stages.rest;
  return option;
}

void LayoutTree::AddOptions(size_t p, size_t m, size_t l, int64_t microbatches, std::vector<LayoutOption>& options) {
  const ModuleChoice& layout = LayoutsOf(p)[m][l];
  const int64_t block = *tuned_.recipe.batch.global_samples / microbatches;
  const int64_t samples = (block + LanesOf(layout) - 1) / LanesOf(layout);  // of the largest lane
  const std::vector<ModuleChoice> ways = space_.WaysOf(m, layout);
  for (size_t w = 0; w < ways.size(); ++w) {
    const LayoutIndex at{static_cast<uint32_t>(l), static_cast<uint32_t>(w)};
    LayoutOption option = OptionOf(m, ways[w], at, samples, microbatches);
    if (!TooLarge(option.stages.memory)) options.push_back(std::move(option));
  }
}

namespace {

// What the step is bounded by before and after the language model, if a module has one of these layouts.
void AddFill(const std::vector<LayoutOption>& options, size_t m, OtherModules& others) {
  std::vector<const ModuleStages*> stages;
  double drain = kInfinite;
  for (const LayoutOption& option : options) {
    if (!option.stages.known) return;
    stages.push_back(&option.stages);
    double after = 0;
    for (const StageCost& stage : option.stages.stages) after += stage.backward ? stage.backward->main_main : 0;
    drain = std::min(drain, option.stages.learns() ? after : 0);
  }
  others.stages[m] = QuickSteps::AtLeast(stages);
  double fill = 0;
  for (const StageCost& stage : others.stages[m].stages) fill += stage.forward.main_main;
  others.fill = std::max(others.fill, fill), others.drain = std::max(others.drain, drain);
}

}  // namespace

const OtherModules& LayoutTree::OthersThatFit(size_t p, int64_t microbatches) {
  const OthersKey key{p, microbatches};
  const auto known = std::find_if(others_.begin(), others_.end(), [&](const auto& one) { return one.first == key; });
  if (known != others_.end()) {
    others_.splice(others_.begin(), others_, known);
    return others_.front().second;
  }
  OtherModules others;
  others.options.resize(tuned_.recipe.modules.size());
  const ModuleStages nothing = QuickSteps::AtLeast({});
  if (!space_.placings()[p].together) others.stages.assign(others.options.size(), nothing);
  const bool together = space_.placings()[p].together;
  for (size_t m = 0; m < others.options.size(); ++m) {
    if (m == language_) continue;
    std::vector<LayoutOption>& options = others.options[m];
    for (size_t l = 0; l < LayoutsOf(p)[m].size(); ++l) AddOptions(p, m, l, microbatches, options);
    others.candidates *= static_cast<double>(options.size());
    std::stable_sort(options.begin(), options.end(),
                     [](const LayoutOption& a, const LayoutOption& b) { return a.least < b.least; });
    const double fastest = options.empty() ? kInfinite : options.front().least;
    others.least = together ? others.least + fastest : std::max(others.least, fastest);
    if (!together && !options.empty() && quick_.Feeds(m)) AddFill(options, m, others);
  }
  if (others_.size() == kMostOthers) others_.pop_back();
  others_.emplace_front(key, std::move(others));
  return others_.front().second;
}

LayoutTree::Ways LayoutTree::WaysOf(size_t p, size_t micro, size_t l, int64_t microbatches, double most_seconds,
                                    uint64_t& too_large) {
  Ways found;
  const std::vector<ModuleChoice> ways = space_.WaysOf(language_, LayoutsOf(p)[language_][l]);
  const int64_t samples = space_.micro_samples()[micro];
  const bool together = space_.placings()[p].together;
  const OtherModules& others = OthersThatFit(p, microbatches);
  const auto with_others = [&](double seconds) {
    return together ? seconds + others.least : std::max(seconds, others.least);
  };
  const auto too_slow = [&](const ModuleChoice& way) {
    return with_others(quick_.LeastOfMany(way, samples, microbatches)) > most_seconds ||
           with_others(quick_.LeastStep(language_, way, samples, microbatches)) > most_seconds;
  };
  const size_t recomputes = space_.recomputes(language_);
  // Ways differ first in how tokens travel. What recomputes nothing is the fastest of those, and what recomputes all
  // the smallest: if that is too slow or too large, so are the others.
  for (size_t first = 0, travel = 0; first < ways.size(); first += recomputes, ++travel) {
    if (too_large >> travel & 1) continue;
    const size_t end = first + recomputes, none = FindWay(ways, first, end, kRecomputesNone),
                 full = FindWay(ways, first, end, kRecomputesAll);
    if (none < end && too_slow(ways[none])) {
      found.fit += recomputes;
      continue;
    }
    if (full < end) {
      const ModuleStages stages = quick_.StagesOf(language_, ways[full], samples);
      // It keeps the input of each layer, which others may drop.
      if (stages.known && TooLarge(stages.memory - 2 * stages.stages.front().out)) {
        too_large |= uint64_t{1} << travel;
        continue;
      }
    }
    std::vector<char> slow(recomputes, 0);
    for (size_t w = first; w < end; ++w) {
      // Running more again is no faster.
      char& is_slow = slow[w - first];
      is_slow = slow[space_.WithoutElementwise(language_, w - first)] || too_slow(ways[w]);
      if (is_slow) {
        ++found.fit;
        continue;
      }
      const LayoutIndex at{static_cast<uint32_t>(l), static_cast<uint32_t>(w)};
      const LayoutOption option = OptionOf(language_, ways[w], at, samples, microbatches);
      if (TooLarge(option.stages.memory)) continue;
      const QuickStep alone = quick_.TimeAlone(option.stages, together, microbatches, others.stages);
      if (TooLarge(alone.memory)) continue;
      ++found.fit;
      const double seconds = std::max(alone.seconds, with_others(option.least));
      if (seconds > most_seconds) continue;
      found.nodes.push_back({.seconds = seconds,
                             .memory = alone.memory,
                             .candidates = others.candidates * static_cast<double>(space_.steps().size()),
                             .placing = static_cast<uint32_t>(p),
                             .micro = static_cast<uint32_t>(micro),
                             .language = at});
    }
  }
  return found;
}

Candidate LayoutTree::CandidateOf(const OpenNode& node) {
  Candidate candidate;
  const size_t count = tuned_.recipe.modules.size();
  std::vector<LayoutIndex> at(count, node.language);
  if (node.level == OpenNode::Level::kLanguage || node.level == OpenNode::Level::kSplits) {
    const ModuleChoice language = ChoiceOf(node.placing, language_, node.language);
    const OtherModules& others = OthersThatFit(node.placing, MicrobatchesOf(node.micro, language));
    for (size_t m = 0; m < count; ++m) {
      if (m != language_) at[m] = others.options[m].front().at;
    }
  } else {
    for (size_t m = 0; m < count; ++m) at[m] = chosen_[node.layouts + m];
  }
  for (size_t m = 0; m < count; ++m) candidate.modules.push_back(ChoiceOf(node.placing, m, at[m]));
  // The last one overlaps as far as it may.
  const bool one = node.level == OpenNode::Level::kOne;
  candidate.step = one ? space_.steps()[node.step] : space_.steps().back();
  candidate.step.micro_samples = space_.micro_samples()[node.micro];
  return candidate;
}

Simplicity LayoutTree::SimplicityOf(const OpenNode& node) {
  const Placing& placing = space_.placings()[node.placing];
  const size_t count = tuned_.recipe.modules.size();
  const bool all = node.level == OpenNode::Level::kModules || node.level == OpenNode::Level::kOne;
  Simplicity simplicity{.axes = count > 1 && !placing.together ? 1 : 0};
  for (size_t m = 0; m < count; ++m) {
    if (!all && m != language_) continue;  // layouts of others are still open
    const LayoutIndex at = all ? chosen_[node.layouts + m] : node.language;
    const Simplicity one = planwright::SimplicityOf(LayoutsOf(node.placing)[m][at.layout]);
    simplicity.axes += one.axes;
    // Of a node of splits no stages are chosen.
    simplicity.uneven += node.level == OpenNode::Level::kSplits ? 0 : one.uneven;
    simplicity.recomputed += space_.RecomputedBy(m, at.way);
  }
  return simplicity;
}

std::vector<OpenNode> LayoutTree::PartsOf(const OpenNode& node, double most_seconds) {
  switch (node.level) {
    case OpenNode::Level::kSplits: return MovedOf(node, most_seconds);
    case OpenNode::Level::kLanguage: return ModulesOf(node, most_seconds);
    default: return StepsOf(node, most_seconds);
  }
}

double LayoutTree::LeastOf(std::span<const size_t> placings) {
  if (placings.empty()) return kInfinite;
  // There may be as many as nodes, and where it has the most ranks it takes the least.
  int64_t ranks = 0;
  for (const size_t p : placings) ranks = std::max(ranks, space_.placings()[p].ranks[language_]);
  return quick_.LeastOnRanks(ranks);
}

std::vector<size_t> LayoutTree::GridsWithStages(size_t p) {
  std::vector<size_t> grids;
  if (!space_.MayMoveLayers(language_)) return grids;
  const std::vector<ModuleChoice>& layouts = LayoutsOf(p)[language_];
  for (size_t l = 0; l < layouts.size(); ++l) {
    if (layouts[l].pp == 1) continue;
    ModuleChoice before = l > 0 ? layouts[l - 1] : ModuleChoice{};
    before.stage_layers = layouts[l].stage_layers;
    if (l == 0 || before != layouts[l]) grids.push_back(l);
  }
  return grids;
}

std::vector<OpenNode> LayoutTree::SplitsOf(size_t p, size_t micro, size_t l, double most_seconds) {
  std::vector<OpenNode> nodes;
  const ModuleChoice layout = LayoutsOf(p)[language_][l];
  const int64_t microbatches = MicrobatchesOf(micro, layout), samples = space_.micro_samples()[micro];
  if (microbatches == 0) return nodes;
  const std::vector<ModuleChoice> ways = space_.WaysOf(language_, layout);
  const auto too_slow = [&](size_t way) {
    return quick_.LeastOfSplits(ways[way], samples, microbatches, most_seconds) > most_seconds;
  };
  const size_t recomputes = space_.recomputes(language_);
  for (size_t first = 0; first < ways.size(); first += recomputes) {
    // What recomputes nothing is the fastest.
    const size_t end = first + recomputes, none = FindWay(ways, first, end, kRecomputesNone);
    if (none < end && too_slow(none)) continue;
    const OtherModules& others = OthersThatFit(p, microbatches);
    if (!(others.candidates > 0) || others.least > most_seconds) return nodes;
    std::vector<char> slow(recomputes, 0);
    for (size_t w = first; w < end; ++w) {
      char& is_slow = slow[w - first];
      is_slow = w != none && (slow[space_.WithoutElementwise(language_, w - first)] || too_slow(w));
      if (is_slow) continue;
      std::optional<LayerCosts> costs = quick_.CostsOfLayers(ways[w], samples, microbatches);
      if (!costs) {
        left_out_ = 0;
        continue;
      }
      costs->fill = others.fill, costs->drain = others.drain;
      const double seconds = std::max(others.least, SplitBounds(*std::move(costs), most_seconds).least());
      if (!(seconds > 0) || seconds == kInfinite || seconds > most_seconds) continue;
      nodes.push_back({.seconds = seconds,
                       .placing = static_cast<uint32_t>(p),
                       .micro = static_cast<uint32_t>(micro),
                       .level = OpenNode::Level::kSplits,
                       .language = {static_cast<uint32_t>(l), static_cast<uint32_t>(w)}});
    }
  }
  return nodes;
}

// Those with the least bounds, and a node of the others.
std::vector<OpenNode> LayoutTree::MovedOf(const OpenNode& node, double most_seconds) {
  std::vector<OpenNode> parts;
  const ModuleChoice way = ChoiceOf(node.placing, language_, node.language);
  const int64_t microbatches = MicrobatchesOf(node.micro, way), samples = space_.micro_samples()[node.micro];
  const OtherModules& others = OthersThatFit(node.placing, microbatches);
  LayerCosts costs = quick_.CostsOfLayers(way, samples, microbatches).value();
  costs.fill = others.fill, costs.drain = others.drain;
  const SplitBounds bounds(std::move(costs), most_seconds);
  const double to = node.seconds * kBand;
  std::vector<ModuleChoice>& layouts = placed_[node.placing].layouts[language_];
  ModuleChoice moved = way;
  const auto try_split = [&](const std::vector<int64_t>& layers, double seconds) {
    if (space_.IsNearlyEven(language_, layers)) return;  // it is a candidate by itself
    moved.stage_layers = layers;
    const LayoutIndex at{static_cast<uint32_t>(layouts.size()), node.language.way};
    const LayoutOption option = OptionOf(language_, moved, at, samples, microbatches);
    ++counts_.timed;
    if (!option.stages.known || TooLarge(option.stages.memory)) return;
    const QuickStep alone = quick_.TimeAlone(option.stages, false, microbatches, others.stages);
    OpenNode part = node;
    part.level = OpenNode::Level::kLanguage;
    part.seconds = std::max({seconds, alone.seconds, option.least, others.least});
    part.memory = alone.memory;
    if (TooLarge(alone.memory) || part.seconds > most_seconds) return;
    part.candidates = others.candidates * static_cast<double>(space_.steps().size());
    part.language = at;
    layouts.push_back(moved);
    parts.push_back(part);
  };
  // What other modules bound comes with the first.
  const bool first = node.seconds <= std::max(others.least, bounds.least());
  if (!bounds.Visit(first ? 0 : node.seconds, std::min(to, std::nextafter(most_seconds, kInfinite)), kMostOfBand,
                    try_split))
    left_out_ = std::min(left_out_, node.seconds);
  if (to <= most_seconds && to <= bounds.most()) parts.push_back(node), parts.back().seconds = to;
  return parts;
}

std::vector<OpenNode> LayoutTree::ModulesOf(const OpenNode& node, double most_seconds) {
  const ModuleChoice way = ChoiceOf(node.placing, language_, node.language);
  const int64_t microbatches = MicrobatchesOf(node.micro, way);
  const bool together = space_.placings()[node.placing].together;
  const LayoutOption language =
      OptionOf(language_, way, node.language, space_.micro_samples()[node.micro], microbatches);
  const OtherModules& others = OthersThatFit(node.placing, microbatches);
  const auto steps = static_cast<double>(space_.steps().size());
  std::vector<const LayoutOption*> chosen(others.options.size(), &language);
  std::vector<OpenNode> parts;
  double looked = 0;
  const auto add = [&] {
    looked += steps;
    std::vector<const ModuleStages*> stages;
    for (const LayoutOption* option : chosen) stages.push_back(&option->stages);
    // What overlaps is never slower in this model, and the number of buckets does not count.
    const QuickStep best = quick_.Time(stages, together, microbatches, {});
    if (TooLarge(best.memory)) {
      counts_.memory += steps;
      return;
    }
    if (best.seconds > most_seconds) {
      counts_.timed += static_cast<int64_t>(steps), counts_.time += steps;
      return;
    }
    OpenNode part = node;
    part.level = OpenNode::Level::kModules;
    part.seconds = std::max(node.seconds, best.seconds), part.memory = std::max(node.memory, best.memory);
    part.candidates = steps;
    part.layouts = static_cast<uint32_t>(chosen_.size());
    for (const LayoutOption* option : chosen) chosen_.push_back(option->at);
    parts.push_back(part);
  };
  const std::function<void(size_t, double)> choose = [&](size_t m, double least) {
    if (m == chosen.size()) return add();
    if (m == language_) return choose(m + 1, least);
    for (const LayoutOption& option : others.options[m]) {
      const double with = together ? least + option.least : std::max(least, option.least);
      if (with > most_seconds) break;  // by time
      chosen[m] = &option;
      choose(m + 1, with);
    }
  };
  choose(0, language.least);
  counts_.time += node.candidates - looked;
  return parts;
}

std::vector<OpenNode> LayoutTree::StepsOf(const OpenNode& node, double most_seconds) {
  const size_t count = tuned_.recipe.modules.size();
  std::vector<ModuleStages> stages;
  std::vector<ModuleChoice> choices;
  int64_t all_stages = 0;
  for (size_t m = 0; m < count; ++m) {
    choices.push_back(ChoiceOf(node.placing, m, chosen_[node.layouts + m]));
    all_stages += choices.back().pp;
  }
  const int64_t microbatches = MicrobatchesOf(node.micro, choices[language_]);
  const int64_t block = *tuned_.recipe.batch.global_samples / microbatches;
  std::vector<const ModuleStages*> all;
  stages.reserve(count);
  for (size_t m = 0; m < count; ++m) {
    const int64_t lanes = LanesOf(choices[m]);
    all.push_back(&stages.emplace_back(quick_.StagesOf(m, choices[m], (block + lanes - 1) / lanes)));
  }
  std::array<std::optional<double>, 4> seconds;
  std::vector<OpenNode> parts;
  for (size_t s = 0; s < space_.steps().size(); ++s) {
    const StepChoice& step = space_.steps()[s];
    if (budget_.MicrobatchesOf(space_.micro_samples()[node.micro], LanesOf(choices[language_]), all_stages,
                               step.buckets) == 0) {
      ++counts_.rules;
      continue;
    }
    ++counts_.timed;
    std::optional<double>& bound = seconds[(step.overlap_reduce ? 1 : 0) + (step.overlap_gather ? 2 : 0)];
    if (!bound) bound = quick_.Time(all, space_.placings()[node.placing].together, microbatches, step).seconds;
    if (*bound > most_seconds) {
      ++counts_.time;
      continue;
    }
    OpenNode part = node;
    part.level = OpenNode::Level::kOne;
    part.seconds = std::max(node.seconds, *bound), part.candidates = 1, part.step = static_cast<uint32_t>(s);
    parts.push_back(part);
  }
  return parts;
}

}  // namespace planwright
