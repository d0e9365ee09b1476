#include "planner/schedule/programs/symbol_sizes.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

// A mean as a count: rounded, and never 0.
int64_t RoundedMean(double value) { return std::max<int64_t>(1, std::llround(value)); }

void SizeExpertRows(const Module& module, Symbol& symbol) {
  // The maximum is (tokens of a rank) * most (LanguageSymbols). On average a rank receives as many rows as its own
  // tokens send: top_k each.
  const int64_t most = std::min(module.top_k(), module.experts() / module.grid.ep) * module.grid.ep;
  const double mean =
      static_cast<double>(symbol.maximum) * static_cast<double>(module.top_k()) / static_cast<double>(most);
  symbol.mean = RoundedMean(mean);
  symbol.expected = std::min(symbol.maximum, RoundedMean(std::ceil(mean * std::max(1.0, module.imbalance))));
}

// `what`: the last part of the symbol's name. `samples`: of the largest lane's microbatch. A size of another name keeps
// its maximum.
void SizeImages(const SampleImages& images, const DataPlan& data, const Module& module, std::string_view what,
                int64_t samples, Symbol& symbol) {
  const int64_t merged = data.pixel_shuffle * data.pixel_shuffle;
  const int64_t classes = module.size("class_tokens");
  double patches = 0;
  for (int64_t count : images.patches)
    patches += static_cast<double>(count) / static_cast<double>(images.patches.size());
  const int64_t rows = samples * images.max_rows, count = samples * images.max_images;
  const double mean_images = static_cast<double>(samples) * images.mean_images, mean_patches = mean_images * patches;
  const auto set = [&](int64_t maximum, double mean) {
    symbol.maximum = std::min(symbol.maximum, std::max<int64_t>(maximum, 1));
    symbol.mean = std::min(symbol.maximum, RoundedMean(mean));
  };
  if (what == "image_rows") set(rows, mean_patches / static_cast<double>(merged));
  if (what == "images") set(count, mean_images);
  if (what == "patches") set(rows * merged, mean_patches);
  if (what == "tokens" || what == "lane_tokens")
    set(rows * merged + count * classes, mean_patches + mean_images * static_cast<double>(classes));
}

}  // namespace

std::vector<Symbol> SizeSymbols(const ProgramInputs& inputs, std::vector<Symbol> symbols) {
  const Budget& budget = inputs.budget;
  const SampleImages images = ImagesOfSample(inputs.data, budget.sequence_length);
  for (Symbol& symbol : symbols) {
    // "language.expert_rows"; of one of several encoders, "language.ENCODER.image_rows".
    const Module* module = inputs.FindModule(symbol.name.substr(0, symbol.name.find('.')));
    if (!module) continue;
    const std::string_view what = std::string_view(symbol.name).substr(symbol.name.rfind('.') + 1);
    if (what.starts_with("expert_rows") && module->top_k() > 0) {
      SizeExpertRows(*module, symbol);
    } else if (inputs.data.pixel_shuffle > 0 && !images.patches.empty()) {
      const LaneSamples largest = SamplesOfLane(budget.block_samples, module->grid.dp, 0);
      SizeImages(images, inputs.data, *module, what, largest.end - largest.first, symbol);
    }
  }
  return symbols;
}

}  // namespace planwright
