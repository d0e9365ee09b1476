#include "planner/compile/schedule/programs/symbol_sizes.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

// A mean as a count: rounded, and never 0.
int64_t RoundedMean(double value) { return std::max<int64_t>(1, std::llround(value)); }

void SizeExpertRows(const Module& module, Symbol& symbol) {
  // The maximum is (tokens of a rank) * most (module_symbols.cc). On average a rank receives as many rows as its own
  // tokens send: top_k each.
  const int64_t most = std::min(module.top_k(), module.experts() / module.grid.ep) * module.grid.ep;
  const double mean =
      static_cast<double>(symbol.maximum) * static_cast<double>(module.top_k()) / static_cast<double>(most);
  symbol.mean = RoundedMean(mean);
  if (module.imbalance > 0)
    symbol.expected = std::min(symbol.maximum, RoundedMean(std::ceil(mean * std::max(1.0, module.imbalance))));
}

// `what`: the last part of the symbol's name. `samples`: of the largest lane's microbatch. `classes`: class tokens of
// an image. A size of another name keeps its maximum.
void SizeImages(const SampleImages& images, int64_t merged, int64_t classes, std::string_view what, int64_t samples,
                Symbol& symbol) {
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

// The encoder whose images a size counts. In a language model "language.ENCODER.image_rows" names it; with one encoder
// it is "language.image_rows". Null: the size counts no images.
const EncoderData* EncoderOf(const Symbol& symbol, const Module& module, const DataPlan& data) {
  if (module.has_images) return data.FindEncoder(module.name);
  const size_t first = symbol.name.find('.'), last = symbol.name.rfind('.');
  if (!std::string_view(symbol.name).ends_with(".image_rows") || data.encoders.empty()) return nullptr;
  return first == last ? &data.encoders.front()
                       : data.FindEncoder(std::string_view(symbol.name).substr(first + 1, last - first - 1));
}

}  // namespace

std::vector<Symbol> SizeSymbols(const ProgramInputs& inputs, std::vector<Symbol> symbols) {
  const Budget& budget = inputs.budget;
  for (Symbol& symbol : symbols) {
    // "language.expert_rows"; of one of several encoders, "language.ENCODER.image_rows".
    const Module* module = inputs.FindModule(symbol.name.substr(0, symbol.name.find('.')));
    if (!module) continue;
    const std::string_view what = std::string_view(symbol.name).substr(symbol.name.rfind('.') + 1);
    if (what.starts_with("expert_rows") && module->top_k() > 0) {
      SizeExpertRows(*module, symbol);
    } else if (const EncoderData* encoder = EncoderOf(symbol, *module, inputs.data)) {
      const SampleImages images = ImagesOfSample(inputs.data, *encoder, budget.sequence_length);
      const LaneSamples largest = SamplesOfLane(budget.block_samples, module->grid.dp, 0);
      const int64_t classes = module->has_images ? module->size("class_tokens") : 0;
      if (!images.patches.empty())
        SizeImages(images, encoder->merged(), classes, what, largest.end - largest.first, symbol);
    }
  }
  return symbols;
}

}  // namespace planwright
