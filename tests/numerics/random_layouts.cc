#include "tests/numerics/random_layouts.h"

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "tests/support/folders.h"

namespace planwright::testing {
namespace {

constexpr int kMostRanks = 16;

bool Validates(const Layout& layout, const std::string& plan, const std::string& source) {
  std::string command = "'" + (plan.empty() ? InBuild("bin/plan") : plan) + "' validate '" +
                        (source.empty() ? InSource() : source) + "/" + layout.recipe + "' precision.params=fp64";
  for (const std::string& word : Join(layout.training, layout.overrides)) command += " '" + word + "'";
  return std::system((command + " > /dev/null 2>&1").c_str()) == 0;
}

// Three of four recipes have rates by part: another draw than that of the layout, which stays what it is. Earlier
// versions do not know them.
void AddParts(uint64_t seed, Layout& layout) {
  PartsDraw draw(seed);
  if (!draw.Wanted()) return;
  for (int tries = 0; tries < 1000; ++tries) {
    Layout with = layout;
    with.training.push_back(draw.Next());
    if (!Validates(with, "", "")) continue;
    layout = std::move(with);
    return;
  }
  throw std::runtime_error("no valid parts among a thousand");
}

}  // namespace

Layout RandomLayout(uint64_t seed, DrawnFamily family, const std::string& plan, const std::string& source) {
  LayoutDraw draw(seed, family);
  for (int tries = 0; tries < 10000; ++tries) {
    Layout layout = draw.Next();
    if (draw.ranks() < 2 || draw.ranks() > kMostRanks || !Validates(layout, plan, source)) continue;
    if (plan.empty()) AddParts(seed, layout);
    layout.name = "seed_" + std::to_string(seed);
    return layout;
  }
  throw std::runtime_error("no valid layout among ten thousand");
}

}  // namespace planwright::testing
