#include "planner/compile/schedule/programs/module_symbols.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "planner/compile/schedule/derive/bridge_value.h"
#include "planner/compile/schedule/programs/program_values.h"

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

}  // namespace

std::vector<Symbol> EncoderSymbols(const Module& module, int64_t rows) {
  // Each row is an image token, which pixel shuffle makes of a square of patches. An image has one row at least.
  const int64_t square = module.size("pixel_shuffle") * module.size("pixel_shuffle"), patches = rows * square,
                classes = module.size("class_tokens"), cp = module.grid.cp;
  const string& name = module.name;
  const Symbol lane_rows = {name + ".image_rows", rows, "image tokens of a lane's microbatch"};
  const Symbol images = {name + ".images", rows, "images of a lane's microbatch, each of one image token or more"};
  if (cp == 1) {
    return {lane_rows,
            {name + ".patches", patches, "patches of a lane's microbatch"},
            images,
            {name + ".tokens", patches + rows * classes, "patches and class tokens of a lane's microbatch"}};
  }
  // A part has at most one band more than its share. Each of its bands may begin an image, which brings class tokens.
  const int64_t band = module.size("max_image") / module.size("patch") / module.size("pixel_shuffle"),
                part = std::min(rows, (rows + cp - 1) / cp + band);
  return {lane_rows,
          {name + ".part_image_rows", part, "image tokens of a cp part of a lane's microbatch"},
          {name + ".patches", part * square, "patches of a cp part of a lane's microbatch"},
          images,
          {name + ".tokens", part * (square + classes), "patches and class tokens of a cp part of a lane's microbatch"},
          {name + ".lane_tokens", patches + rows * classes, "patches and class tokens of a lane's microbatch"}};
}

std::vector<Symbol> SymbolsOf(const BlockInputs& inputs, const Module& module) {
  if (!module.has_images) return LanguageSymbols(inputs, module);
  // Each token of a sample may be an image token. Lane 0 is never dealt fewer samples than another.
  const LaneSamples largest = SamplesOfLane(inputs.budget.block_samples, module.grid.dp, 0);
  return EncoderSymbols(module, (largest.end - largest.first) * inputs.budget.sequence_length);
}

}  // namespace planwright
