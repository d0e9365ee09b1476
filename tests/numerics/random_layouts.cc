#include "tests/numerics/random_layouts.h"

#include <cstdlib>
#include <random>
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

namespace {

// Adapters on up to three products of a module. Draws until all of them are there.
class AdapterDraw {
 public:
  explicit AdapterDraw(uint64_t seed) : random_(seed ^ 0xADA97E25) {}

  void AddTo(Layout& layout, DrawnFamily family) {
    static const std::vector<std::string> hybrid = {"in_proj",
                                                    "out_proj",
                                                    "q_proj",
                                                    "k_proj",
                                                    "v_proj",
                                                    "o_proj",
                                                    "mixer.up_proj",
                                                    "mixer.down_proj",
                                                    "shared_experts.up_proj",
                                                    "shared_experts.down_proj"},
                                          decoder = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                     "gate_proj", "up_proj", "down_proj"},
                                          encoder = {"attn.qkv", "attn.proj", "fc1", "fc2"};
    const bool has_encoder = layout.recipe.find("vlm") != std::string::npos;
    const int which = has_encoder ? static_cast<int>(random_() % 3) : 0;
    if (which != 1) Add("language", family == DrawnFamily::kHybrid ? hybrid : decoder, layout);
    if (which != 0) Add("radio_encoder", encoder, layout);
  }

 private:
  void Add(const std::string& module, const std::vector<std::string>& products, Layout& layout) {
    std::string targets;
    for (uint64_t i = 0, count = 1 + random_() % 3, first = random_(); i < count; ++i)
      targets += (i == 0 ? "" : ", ") + products[(first + i) % products.size()];
    layout.training.push_back("modules." + module + ".train.backbone=frozen");
    layout.training.push_back("modules." + module + ".adapter={rank: " + std::to_string(1 + random_() % 5) +
                              ", alpha: 3.0, targets: [" + targets + "]}");
  }

  std::mt19937_64 random_;
};

}  // namespace

Layout RandomAdapters(uint64_t seed, DrawnFamily family) {
  LayoutDraw draw(seed, family);
  AdapterDraw adapters(seed);
  for (int tries = 0; tries < 10000; ++tries) {
    Layout layout = draw.Next();
    if (draw.ranks() < 2 || draw.ranks() > kMostRanks) continue;
    adapters.AddTo(layout, family);
    if (!Validates(layout, "", "")) continue;
    layout.name = "seed_" + std::to_string(seed);
    return layout;
  }
  throw std::runtime_error("no valid layout with adapters among ten thousand");
}

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
