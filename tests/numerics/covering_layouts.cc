#include "tests/numerics/covering_layouts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace planwright::testing {
namespace {

// What overrides say of where a module is.
struct Placed {
  int first_rank = 0, ranks = 1;
  std::map<std::string, int> axes;  // with the sizes that are given

  int Size(const std::string& axis) const {
    const auto at = axes.find(axis);
    return at == axes.end() ? 1 : at->second;
  }
};

struct Parsed {
  std::map<std::string, Placed> modules;
  std::set<std::string> others;  // overrides of other keys

  // The value that an override of this key of a model gives.
  int OfModel(const std::string& key, int otherwise) const {
    for (const std::string& word : others) {
      const size_t at = word.starts_with("models.") ? word.find("." + key + "=") : std::string::npos;
      if (at != std::string::npos) return std::stoi(word.substr(at + key.size() + 2));
    }
    return otherwise;
  }
};

// "modules.language.parallel.tp" -> {"language", "parallel.tp"}; {"", ""} for other keys.
std::pair<std::string, std::string> ModuleKey(const std::string& key) {
  const std::string prefix = "modules.";
  const size_t dot = key.find('.', prefix.size());
  if (!key.starts_with(prefix) || dot == std::string::npos) return {};
  return {key.substr(prefix.size(), dot - prefix.size()), key.substr(dot + 1)};
}

Parsed Parse(const Layout& layout) {
  Parsed parsed;
  for (const std::string& word : Join(layout.training, layout.overrides)) {
    const size_t equals = word.find('=');
    const auto [module, key] = ModuleKey(word.substr(0, equals));
    const std::string value = word.substr(equals + 1);
    const std::string parallel = "parallel.";
    if (key == "placement.first_rank") {
      parsed.modules[module].first_rank = std::stoi(value);
    } else if (key == "placement.ranks") {
      parsed.modules[module].ranks = std::stoi(value);
    } else if (key.starts_with(parallel) && key != "parallel.stage_layers" && key != "parallel.dispatch" &&
               key != "parallel.overlap_dispatch") {
      parsed.modules[module].axes[key.substr(parallel.size())] = std::stoi(value);  // the last one counts
    } else {
      parsed.others.insert(word);
    }
  }
  return parsed;
}

int RanksOf(const Layout& layout) {
  int ranks = 1;
  for (const auto& [name, placed] : Parse(layout).modules) ranks = std::max(ranks, placed.first_rank + placed.ranks);
  return ranks;
}

// What a layout covers: features, and pairs of axes as "a x b".
std::set<std::string> CoveredBy(const Layout& layout, Cover cover) {
  std::set<std::string> covered = FeaturesOf(layout);
  if (cover == Cover::kEach) return covered;
  const std::set<std::string> axes = AxesOf(layout);
  for (auto a = axes.begin(); a != axes.end(); ++a) {
    for (auto b = std::next(a); b != axes.end(); ++b) covered.insert(*a + " x " + *b);
  }
  return covered;
}

}  // namespace

std::set<std::string> AxesOf(const Layout& layout) {
  std::set<std::string> axes;
  const Parsed parsed = Parse(layout);
  for (const auto& [name, placed] : parsed.modules) {
    for (const auto& [axis, size] : placed.axes) {
      if (size > 1) axes.insert(name + "." + axis);
    }
    const int dense = placed.Size("tp") * placed.Size("cp") * placed.Size("pp"),
              expert = placed.Size("expert_tp") * placed.Size("ep") * placed.Size("pp");
    if (placed.ranks > dense) axes.insert(name + ".dp");
    if (name == "language" && placed.ranks > expert) axes.insert(name + ".expert_dp");
    for (const auto& [other, there] : parsed.modules) {
      const int first = std::max(placed.first_rank, there.first_rank),
                end = std::min(placed.first_rank + placed.ranks, there.first_rank + there.ranks);
      if (other != name && end - first > 0 && std::max(placed.ranks, there.ranks) > 1) axes.insert("colocated");
    }
    if (name != "language") continue;
    // Of the tiny models without these overrides.
    if (placed.Size("tp") > parsed.OfModel("attention.kv_groups", 2)) axes.insert("shared_keys");
    if (parsed.OfModel("vocabulary", 256) % placed.Size("tp") != 0) axes.insert("padded_vocabulary");
  }
  return axes;
}

std::set<std::string> FeaturesOf(const Layout& layout) {
  std::set<std::string> features = Parse(layout).others;
  features.merge(AxesOf(layout));
  features.insert(layout.recipe);
  return features;
}

std::vector<Layout> CoveringLayouts(const std::vector<Layout>& all, Cover cover) {
  struct Candidate {
    const Layout* layout;
    std::set<std::string> adds;
    int ranks;
  };
  std::vector<Candidate> left;
  for (const Layout& layout : all) left.push_back({&layout, CoveredBy(layout, cover), RanksOf(layout)});
  std::vector<Layout> chosen;
  for (;;) {
    const auto best = std::max_element(left.begin(), left.end(), [](const Candidate& a, const Candidate& b) {
      return std::tuple(a.adds.size(), -a.ranks) < std::tuple(b.adds.size(), -b.ranks);
    });
    if (best == left.end() || best->adds.empty()) return chosen;
    chosen.push_back(*best->layout);
    const std::set<std::string> added = best->adds;
    for (Candidate& candidate : left) {
      std::erase_if(candidate.adds, [&](const std::string& feature) { return added.contains(feature); });
    }
    left.erase(best);
  }
}

}  // namespace planwright::testing
