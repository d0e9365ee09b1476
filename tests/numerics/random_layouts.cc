#include "tests/numerics/random_layouts.h"

#include <cstdlib>
#include <stdexcept>

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

}  // namespace

Layout RandomLayout(uint64_t seed, DrawnFamily family, const std::string& plan, const std::string& source) {
  LayoutDraw draw(seed, family);
  for (int tries = 0; tries < 10000; ++tries) {
    Layout layout = draw.Next();
    if (draw.ranks() < 2 || draw.ranks() > kMostRanks || !Validates(layout, plan, source)) continue;
    layout.name = "seed_" + std::to_string(seed);
    return layout;
  }
  throw std::runtime_error("no valid layout among ten thousand");
}

}  // namespace planwright::testing
