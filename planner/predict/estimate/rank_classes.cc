#include "planner/predict/estimate/rank_classes.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

int64_t SamplesOf(const Plan& plan, const Module& module, int lane) {
  const LaneSamples samples = SamplesOfLane(plan.budget.block_samples, std::max(1, module.grid.dp), lane);
  return samples.end - samples.first;
}

// "1 sample of radio_encoder", of the modules in which ranks of the role differ.
std::string TextOf(const Plan& plan, const std::vector<int>& split, const std::vector<int64_t>& samples) {
  std::string text;
  for (int m : split) {
    const auto count = samples[static_cast<size_t>(m)];
    absl::StrAppend(&text, text.empty() ? "" : ", ", count == 0 ? "no" : absl::StrCat(count), " sample",
                    count == 1 ? "" : "s", " of ", plan.modules[static_cast<size_t>(m)].name);
  }
  return text;
}

}  // namespace

int64_t RankClass::count() const {
  int64_t count = 0;
  for (const RankRange& range : ranks) count += range.count;
  return count;
}

std::vector<RankClass> ClassesOf(const Plan& plan) {
  std::vector<RankClass> classes;
  for (size_t r = 0; r < plan.roles.size(); ++r) {
    const Role& role = plan.roles[r];
    if (role.ranks.empty()) continue;
    const int first = role.ranks.front().first;
    RankClass whole{.role = static_cast<int>(r), .ranks = role.ranks};
    std::vector<int> split;
    for (size_t m = 0; m < plan.modules.size(); ++m) {
      const Module& module = plan.modules[m];
      const bool inside = module.grid.contains(first);
      whole.samples.push_back(inside ? SamplesOf(plan, module, CoordinateOf(module.grid, first, Axis::kDp)) : 0);
      whole.of_planned.push_back(1);
      if (inside && plan.budget.block_samples % std::max(1, module.grid.dp) != 0) split.push_back(static_cast<int>(m));
    }
    if (split.empty()) {
      classes.push_back(std::move(whole));
      continue;
    }
    // By the numbers of samples, most first.
    std::map<std::vector<int64_t>, std::vector<int>, std::greater<>> ranks;
    for (int rank : Expand(role.ranks)) {
      std::vector<int64_t> samples = whole.samples;
      for (int m : split) {
        const Module& module = plan.modules[static_cast<size_t>(m)];
        if (module.grid.contains(rank))
          samples[static_cast<size_t>(m)] = SamplesOf(plan, module, CoordinateOf(module.grid, rank, Axis::kDp));
      }
      ranks[samples].push_back(rank);
    }
    for (auto& [samples, members] : ranks) {
      RankClass part{.role = static_cast<int>(r), .ranks = Compress(members), .samples = samples};
      part.of_planned = whole.of_planned;
      for (int m : split) {
        const auto at = static_cast<size_t>(m);
        part.of_planned[at] =
            static_cast<double>(samples[at]) / static_cast<double>(SamplesOf(plan, plan.modules[at], 0));
      }
      if (ranks.size() > 1) part.what = TextOf(plan, split, samples);
      classes.push_back(std::move(part));
    }
  }
  return classes;
}

}  // namespace planwright
