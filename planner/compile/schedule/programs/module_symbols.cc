#include "planner/compile/schedule/programs/module_symbols.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "planner/compile/schedule/derive/bridge_value.h"
#include "planner/compile/schedule/programs/program_values.h"
#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

using std::string;

std::vector<Symbol> LanguageSymbols(const BlockInputs& inputs, const Module& module) {
  const string& name = module.name;
  const int64_t sequence = inputs.budget.sequence_length, samples = inputs.budget.micro_samples, ep = module.grid.ep;
  std::vector<Symbol> symbols;
  for (const Bridge& bridge : inputs.bridges) {
    if (bridge.to != name) continue;
    symbols.push_back({absl::StrCat(name, ".", BridgeValue(inputs.bridges, bridge, "image_rows")), samples * sequence,
                       "image tokens of a lane's microbatch"});
  }
  if (module.experts() > 0 && ep > 1) {
    // A token sends a rank at most top_k rows, and at most one row for each of its experts.
    const int64_t most = std::min(module.top_k(), module.experts() / ep);
    // In the worst case all tokens of all ep ranks choose this rank's experts.
    const int64_t rows = sequence / (module.grid.tp * module.grid.cp) * samples * most * ep;
    symbols.push_back({name + ".expert_rows", rows, "rows that the experts of one rank can receive"});
    if (module.grid.expert_tp > 1) {
      symbols.push_back({name + ".expert_rows_gathered", rows * module.grid.expert_tp,
                         "rows of all ranks that hold parts of the same experts"});
    }
  }
  if (inputs.data.packed_documents)
    symbols.push_back({name + ".documents", samples * sequence, "documents of a lane's microbatch"});
  return symbols;
}

// A mean as a count: rounded, and never 0.
int64_t RoundedMean(double value) { return std::max<int64_t>(1, std::llround(value)); }

void SizeExpertRows(const Module& module, Symbol& symbol) {
  // The maximum is (tokens of a rank) * most (LanguageSymbols). On average a rank receives as many rows as its own
  // tokens send: top_k each.
  const int64_t most = std::min(module.top_k(), module.experts() / module.grid.ep) * module.grid.ep;
  const double mean =
      static_cast<double>(symbol.maximum) * static_cast<double>(module.top_k()) / static_cast<double>(most);
  symbol.mean = RoundedMean(mean);
  if (module.imbalance > 0)
    symbol.expected = std::min(symbol.maximum, RoundedMean(std::ceil(mean * std::max(1.0, module.imbalance))));
}

// `what`: the last part of the symbol's name. `samples`: of the largest lane's microbatch. `cp`, `classes`: of the
// encoder; 1 and 0 of a language model. A size of another name keeps its maximum.
void SizeImages(const SampleImages& images, int64_t merged, int cp, int64_t classes, std::string_view what,
                int64_t samples, Symbol& symbol) {
  const int64_t rows = samples * images.max_rows, count = samples * images.max_images;
  const double mean_images = static_cast<double>(samples) * images.mean_images,
               mean_patches = mean_images * images.mean_patches(),
               mean_tokens = mean_patches + mean_images * static_cast<double>(classes);
  const auto set = [&](int64_t maximum, double mean) {
    symbol.maximum = std::min(symbol.maximum, std::max<int64_t>(maximum, 1));
    symbol.mean = std::min(symbol.maximum, RoundedMean(mean));
  };
  if (what == "image_rows") set(rows, mean_patches / static_cast<double>(merged));
  if (what == "images") set(count, mean_images);
  if (what == "lane_tokens") set(rows * merged + count * classes, mean_tokens);
  if (what == "lane_patches") set(rows * merged, mean_patches);
  // With cp, of an average part. Its maximum, which has a band more than its share, stays.
  if (what == "part_image_rows") set(symbol.maximum, mean_patches / static_cast<double>(merged) / cp);
  if (what == "patches") set(rows * merged, mean_patches / cp);
  if (what == "tokens") set(rows * merged + count * classes, mean_tokens / cp);
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

std::vector<Symbol> EncoderSymbols(const Module& module, int64_t rows) {
  // Each row is an image token, which pixel shuffle makes of a square of patches. An image has one row at least.
  const int64_t square = module.size("pixel_shuffle") * module.size("pixel_shuffle"), patches = rows * square,
                classes = module.size("class_tokens"), cp = module.grid.cp;
  const string& name = module.name;
  const Symbol lane_rows = {name + ".image_rows", rows, "image tokens of a lane's microbatch"};
  const Symbol images = {name + ".images", rows, "images of a lane's microbatch, each of one image token or more"};
  // Without class tokens patches are all that an encoder has, and one size counts both.
  std::vector<Symbol> symbols;
  if (cp == 1) {
    symbols = {lane_rows, {name + ".patches", patches, "patches of a lane's microbatch"}, images};
    if (classes > 0)
      symbols.push_back(
          {name + ".tokens", patches + rows * classes, "patches and class tokens of a lane's microbatch"});
    return symbols;
  }
  // A part has at most one band more than its share. Each of its bands may begin an image, which brings class tokens.
  const int64_t band = module.size("max_image") / module.size("patch") / module.size("pixel_shuffle"),
                part = std::min(rows, (rows + cp - 1) / cp + band);
  symbols = {lane_rows,
             {name + ".part_image_rows", part, "image tokens of a cp part of a lane's microbatch"},
             {name + ".patches", part * square, "patches of a cp part of a lane's microbatch"},
             images};
  if (classes == 0) {
    symbols.push_back({name + ".lane_patches", patches, "patches of a lane's microbatch"});
    return symbols;
  }
  symbols.push_back(
      {name + ".tokens", part * (square + classes), "patches and class tokens of a cp part of a lane's microbatch"});
  symbols.push_back(
      {name + ".lane_tokens", patches + rows * classes, "patches and class tokens of a lane's microbatch"});
  return symbols;
}

std::vector<Symbol> SymbolsOf(const BlockInputs& inputs, const Module& module) {
  if (!module.has_images) return LanguageSymbols(inputs, module);
  // Each token of a sample may be an image token. Lane 0 is never dealt fewer samples than another.
  const LaneSamples largest = SamplesOfLane(inputs.budget.block_samples, module.grid.dp, 0);
  return EncoderSymbols(module, (largest.end - largest.first) * inputs.budget.sequence_length);
}

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
      const SampleImages images = ImagesOfRun(inputs.data, inputs.evaluation, *encoder, budget.sequence_length);
      const LaneSamples largest = SamplesOfLane(budget.block_samples, module->grid.dp, 0);
      const int64_t classes = module->has_images ? module->size("class_tokens") : 0;
      const int cp = module->has_images ? module->grid.cp : 1;
      if (images.any()) SizeImages(images, encoder->merged(), cp, classes, what, largest.end - largest.first, symbol);
    }
  }
  return symbols;
}

}  // namespace planwright
