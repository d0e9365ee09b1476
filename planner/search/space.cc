#include "planner/search/space.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/compile/topology/check_layout.h"
#include "planner/compile/topology/derive_grids.h"
#include "planner/recipe/model_facts.h"

namespace planwright {
namespace {

std::vector<int64_t> DivisorsOf(int64_t number) {
  std::vector<int64_t> divisors;
  for (int64_t i = 1; i * i <= number; ++i) {
    if (number % i != 0) continue;
    divisors.push_back(i);
    if (i * i != number) divisors.push_back(number / i);
  }
  std::sort(divisors.begin(), divisors.end());
  return divisors;
}

int64_t LayersOf(const ModuleRecipe& module) {
  const std::string pattern = *module.model.pattern;
  return std::count_if(pattern.begin(), pattern.end(), [](char c) { return c != '|' && c != '/'; });
}

// Nearly even: `more` stages have one layer more, those from `first` on.
std::vector<int64_t> NearlyEven(int64_t layers, int64_t stages, bool from_the_end) {
  std::vector<int64_t> sizes(static_cast<size_t>(stages), layers / stages);
  for (int64_t i = 0; i < layers % stages; ++i) ++sizes[static_cast<size_t>(from_the_end ? stages - 1 - i : i)];
  return sizes;
}

std::vector<size_t> PlacesWithoutElementwise(const std::vector<std::vector<std::string>>& ways) {
  std::vector<size_t> places;
  for (size_t w = 0; w < ways.size(); ++w) {
    std::vector<std::string> without = ways[w];
    std::erase(without, kElementwise);
    if (without.empty()) without = {"none"};
    const auto at = std::find(ways.begin(), ways.end(), without);
    places.push_back(at == ways.end() ? w : static_cast<size_t>(at - ways.begin()));
  }
  return places;
}

// Ways to give `units` to `parts`, at least one each.
void Deal(int64_t units, size_t parts, std::vector<int64_t>& dealt,
          const std::function<void(const std::vector<int64_t>&)>& visit) {
  if (parts == 1) {
    dealt.push_back(units);
    visit(dealt);
    dealt.pop_back();
    return;
  }
  for (int64_t first = 1; first + static_cast<int64_t>(parts) - 1 <= units; ++first) {
    dealt.push_back(first);
    Deal(units - first, parts - 1, dealt, visit);
    dealt.pop_back();
  }
}

}  // namespace

Space::Space(const Recipe& recipe, int64_t ranks, std::vector<std::string> fixed)
    : recipe_(recipe), changed_(recipe), fixed_(std::move(fixed)), given_(CandidateOf(recipe)) {
  FindPlacings(ranks);
  micro_samples_ = Fixed("batch.micro_samples") ? std::vector<int64_t>{given_.step.micro_samples}
                                                : DivisorsOf(std::max<int64_t>(1, *recipe.batch.global_samples));
  FindSteps();
  for (size_t m = 0; m < recipe.modules.size(); ++m) {
    recomputes_.push_back(RecomputesOf(m));
    without_.push_back(PlacesWithoutElementwise(recomputes_.back()));
  }
}

double Space::About() {
  if (placings_.empty()) return 0;
  double about = static_cast<double>(placings_.size() * micro_samples_.size() * steps_.size());
  for (size_t m = 0; m < recipe_.modules.size(); ++m) {
    double ways = 0;
    for (const ModuleChoice& layout : LayoutsOf(m, placings_.front()))
      ways += static_cast<double>(CountWays(m, layout));
    about *= ways;
  }
  return about;
}

void Space::FindSteps() {
  const StepChoice& given = given_.step;
  for (bool reduce : {false, true}) {
    if (Fixed("gradients.overlap_reduce") && reduce != given.overlap_reduce) continue;
    for (bool gather : {false, true}) {
      if (Fixed("gradients.overlap_gather") && gather != given.overlap_gather) continue;
      std::vector<int64_t> buckets = {given.buckets};
      if (!Fixed("gradients.buckets")) {
        // What does not overlap is not cut.
        buckets = reduce || gather ? std::vector<int64_t>{1, 4, 16} : std::vector<int64_t>{1};
        if (std::find(buckets.begin(), buckets.end(), given.buckets) == buckets.end()) buckets.push_back(given.buckets);
      }
      for (int64_t count : buckets) {
        steps_.push_back({.micro_samples = given.micro_samples,
                          .buckets = count,
                          .overlap_reduce = reduce,
                          .overlap_gather = gather});
      }
    }
  }
}

bool Space::Fixed(const std::string& key) const {
  return std::any_of(fixed_.begin(), fixed_.end(),
                     [&](const std::string& fixed) { return key == fixed || absl::StartsWith(key, fixed + "."); });
}

void Space::FindPlacings(int64_t ranks) {
  const size_t count = recipe_.modules.size();
  std::vector<size_t> order(count);  // by first rank, as the recipe places them
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return given_.modules[a].first_rank < given_.modules[b].first_rank; });
  size_t known = 0;  // placings that others may be the same as: there may be as many as nodes, which differ
  const auto add = [&](const Placing& placing) {
    for (size_t m = 0; m < count; ++m) {
      const std::string key = absl::StrCat("modules.", *recipe_.modules[m].name, ".placement.");
      if (Fixed(key + "ranks") && placing.ranks[m] != given_.modules[m].ranks) return;
      if (Fixed(key + "first_rank") && placing.first_rank[m] != given_.modules[m].first_rank) return;
    }
    for (size_t p = 0; p < known; ++p) {
      if (placings_[p].ranks == placing.ranks && placings_[p].first_rank == placing.first_rank) return;
    }
    placings_.push_back(placing);
  };
  Placing given;
  int64_t end = 0;
  for (const ModuleChoice& module : given_.modules) {
    given.first_rank.push_back(module.first_rank), given.ranks.push_back(module.ranks);
    end = std::max(end, module.first_rank + module.ranks);
  }
  given.together = count > 1 && given_.modules[0].first_rank == given_.modules[1].first_rank;
  if (end == ranks) add(given);
  if (count > 1) {
    known = placings_.size();
    add({std::vector<int64_t>(count, 0), std::vector<int64_t>(count, ranks), true});
  }
  known = placings_.size();
  // On one node by single ranks, else by whole nodes.
  const int64_t node = std::max<int64_t>(1, *recipe_.cluster.gpus_per_node);
  const int64_t unit = ranks > node && ranks % node == 0 ? node : 1;
  std::vector<int64_t> dealt;
  Deal(ranks / unit, count, dealt, [&](const std::vector<int64_t>& units) {
    Placing placing{std::vector<int64_t>(count), std::vector<int64_t>(count)};
    int64_t first = 0;
    for (size_t i = 0; i < count; ++i) {
      placing.first_rank[order[i]] = first, placing.ranks[order[i]] = units[i] * unit;
      first += units[i] * unit;
    }
    add(placing);
  });
}

bool Space::SplitIsFixed(size_t m) const {
  const ModuleRecipe& module = recipe_.modules[m];
  return module.first_stage_layers || module.last_stage_layers || absl::StrContains(*module.model.pattern, "|") ||
         Fixed(absl::StrCat("modules.", *module.name, ".parallel.stage_layers"));
}

bool Space::MayMoveLayers(size_t m) const {
  const bool one_stage =
      given_.modules[m].pp == 1 && Fixed(absl::StrCat("modules.", *recipe_.modules[m].name, ".parallel.pp"));
  return !SplitIsFixed(m) && !one_stage && LayersOf(recipe_.modules[m]) > 1 &&
         std::any_of(placings_.begin(), placings_.end(),
                     [&](const Placing& placing) { return !placing.together && placing.ranks[m] > 1; });
}

bool Space::IsNearlyEven(size_t m, const std::vector<int64_t>& stage_layers) const {
  const auto stages = static_cast<int64_t>(stage_layers.size());
  if (stages == given_.modules[m].pp && stage_layers == given_.modules[m].stage_layers) return true;
  const int64_t layers = LayersOf(recipe_.modules[m]);
  return stage_layers == NearlyEven(layers, stages, false) || stage_layers == NearlyEven(layers, stages, true);
}

std::vector<std::vector<int64_t>> Space::SplitsOf(size_t m, int64_t pp) const {
  const std::vector<int64_t>& given = given_.modules[m].stage_layers;
  std::vector<std::vector<int64_t>> splits;
  if (SplitIsFixed(m)) {
    // Where no list gives the layers, other keys do, or stages are even.
    if (given.empty()) return {{}};
    if (pp == given_.modules[m].pp) splits.push_back(given);
    return splits;
  }
  if (pp == given_.modules[m].pp) splits.push_back(given);
  const int64_t layers = LayersOf(recipe_.modules[m]);
  // An override cannot remove the key, so a recipe that has it goes on giving it.
  if (layers % pp == 0 && given.empty() && splits.empty()) splits.push_back({});
  for (bool from_the_end : {false, true}) {
    const std::vector<int64_t> split = NearlyEven(layers, pp, from_the_end);
    if (layers % pp == 0 && given.empty()) break;
    if (std::find(splits.begin(), splits.end(), split) == splits.end()) splits.push_back(split);
  }
  return splits;
}

std::vector<std::vector<std::string>> Space::RecomputesOf(size_t m) const {
  const ModuleRecipe& module = recipe_.modules[m];
  std::vector<std::vector<std::string>> ways = {given_.modules[m].recompute};
  const std::string key = absl::StrCat("modules.", *module.name, ".recompute");
  if (Fixed(key)) return ways;
  const auto add = [&](const std::vector<std::string>& way) {
    if (std::find(ways.begin(), ways.end(), way) == ways.end()) ways.push_back(way);
  };
  add({"none"});
  if (*module.train_backbone == "frozen" && !module.adapter) return ways;
  add({"full"});
  std::vector<std::string> words;
  const ModelStatement& statement = StatementOfModel(module.model);
  for (const StatedLayer& kind : statement.layer_kinds) {
    // Taps are few, and what they keep is not worth twice the ways.
    if (kind.letter != statement.TapLetter() && module.model.pattern->find(kind.letter) != std::string::npos)
      words.push_back(kind.word);
  }
  // Layers of other kinds keep all, or run what is elementwise again.
  for (unsigned set = 0; set + 1 < 1u << words.size(); ++set) {
    std::vector<std::string> way;
    for (size_t i = 0; i < words.size(); ++i) {
      if (set >> i & 1) way.push_back(words[i]);
    }
    if (set > 0) add(way);
    way.emplace_back(kElementwise);
    add(way);
  }
  return ways;
}

std::vector<int64_t> Space::SizesOf(const std::string& key, int64_t is, int64_t of, bool in_node) const {
  if (Fixed(key)) return of % is == 0 ? std::vector<int64_t>{is} : std::vector<int64_t>{};
  std::vector<int64_t> sizes = DivisorsOf(of);
  if (in_node) {
    const int64_t node = std::max<int64_t>(1, *recipe_.cluster.gpus_per_node);
    std::erase_if(sizes, [&](int64_t size) { return node % size != 0 && size != is; });
  }
  return sizes;
}

std::vector<ModuleChoice> Space::LayoutsOf(size_t m, const Placing& placing) {
  const ModuleChoice& given = given_.modules[m];
  const std::string key = absl::StrCat("modules.", *recipe_.modules[m].name, ".parallel.");
  const int64_t ranks = placing.ranks[m];
  const bool experts = HasExperts(recipe_.modules[m].model);
  const auto of_experts = [&](int64_t of) { return experts ? of : 1; };
  std::vector<ModuleChoice> layouts;
  listed_ = 0;
  ModuleChoice choice = given;
  choice.first_rank = placing.first_rank[m], choice.ranks = ranks;
  const auto add = [&] {
    for (const std::vector<int64_t>& split : SplitsOf(m, choice.pp)) {
      choice.stage_layers = split;
      ++listed_;
      if (Allowed(m, choice)) layouts.push_back(choice);
    }
  };
  for (int64_t pp : SizesOf(key + "pp", given.pp, placing.together ? 1 : ranks, false)) {
    if (pp > LayersOf(recipe_.modules[m])) continue;
    choice.pp = pp;
    for (int64_t tp : SizesOf(key + "tp", given.tp, ranks / pp, true)) {
      choice.tp = tp;
      const int64_t node = std::max<int64_t>(1, *recipe_.cluster.gpus_per_node);
      for (int64_t cp : SizesOf(key + "cp", given.cp, placing.together ? 1 : ranks / pp / tp, true)) {
        if (node % (tp * cp) != 0 && (tp != given.tp || cp != given.cp)) continue;
        choice.cp = cp;
        for (int64_t expert_tp : SizesOf(key + "expert_tp", given.expert_tp, of_experts(ranks / pp), true)) {
          choice.expert_tp = expert_tp;
          for (int64_t ep : SizesOf(key + "ep", given.ep, of_experts(ranks / pp / expert_tp), false)) {
            choice.ep = ep;
            add();
          }
        }
      }
    }
  }
  return layouts;
}

std::vector<std::string> Space::DispatchesOf(size_t m, const ModuleChoice& layout) const {
  if (Fixed(absl::StrCat("modules.", *recipe_.modules[m].name, ".parallel.dispatch")))
    return {given_.modules[m].dispatch};
  return layout.ep > 1 ? std::vector<std::string>{"all_to_all", "all_gather"} : std::vector<std::string>{"auto"};
}

std::vector<char> Space::OverlapsOf(size_t m, const ModuleChoice& layout) const {
  if (Fixed(absl::StrCat("modules.", *recipe_.modules[m].name, ".parallel.overlap_dispatch")))
    return {given_.modules[m].overlap_dispatch};
  return layout.ep * layout.expert_tp > 1 ? std::vector<char>{false, true} : std::vector<char>{false};
}

size_t Space::CountWays(size_t m, const ModuleChoice& layout) const {
  return DispatchesOf(m, layout).size() * OverlapsOf(m, layout).size() * recomputes_[m].size();
}

int64_t Space::RecomputedBy(size_t m, size_t way) const {
  const std::vector<std::string>& words = recomputes_[m][way % recomputes_[m].size()];
  return std::count_if(words.begin(), words.end(), [](const std::string& word) { return word != "none"; });
}

std::vector<ModuleChoice> Space::WaysOf(size_t m, const ModuleChoice& layout) const {
  std::vector<ModuleChoice> ways;
  for (const std::string& dispatch : DispatchesOf(m, layout)) {
    for (char overlap : OverlapsOf(m, layout)) {
      for (const std::vector<std::string>& recompute : recomputes_[m]) {
        ModuleChoice& way = ways.emplace_back(layout);
        way.dispatch = dispatch, way.overlap_dispatch = overlap, way.recompute = recompute;
      }
    }
  }
  return ways;
}

bool Space::Allowed(size_t m, const ModuleChoice& choice) {
  ModuleRecipe& module = changed_.modules[m];
  module.first_rank.value = choice.first_rank, module.ranks.value = choice.ranks;
  module.tp.value = choice.tp, module.cp.value = choice.cp, module.pp.value = choice.pp;
  module.ep.value = choice.ep, module.expert_tp.value = choice.expert_tp;
  module.dp.reset(), module.stage_layers.reset();
  if (!choice.stage_layers.empty()) module.stage_layers = Located(choice.stage_layers);
  Diagnostics problems;
  if (!DeriveGrid(module, problems)) return false;
  const auto pattern = PatternOfLayers(module.model, problems);
  if (!pattern) return false;
  const auto [cut, new_cut] = cuts_.try_emplace({m, choice.tp, choice.cp, choice.expert_tp, choice.ep});
  if (new_cut) cut->second = CheckLayout(changed_, module, *pattern, problems);
  if (!cut->second) return false;
  const auto [stages, new_stages] = stages_.try_emplace({m, choice.pp, choice.stage_layers});
  if (new_stages) stages->second = CheckModelShape(module, *pattern, problems).has_value();
  return stages->second;
}

}  // namespace planwright
