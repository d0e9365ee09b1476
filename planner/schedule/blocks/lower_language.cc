#include "planner/schedule/blocks/lower_language.h"

#include <algorithm>

#include "planner/diagnostics/bug.h"
#include "planner/schedule/blocks/block_passes.h"

namespace planwright {
namespace {

using std::string;

// One branch for each kind of layer_kinds.def.
LayerBlocks LowerLayer(char letter, const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                       int origin) {
#define LAYER(id, its_letter, word, title)                                        \
  if (letter == its_letter[0]) {                                                  \
    Block forward = Lower##id##Forward(model, context, sizes, origin);            \
    Block backward = Lower##id##Backward(model, context, sizes, forward, origin); \
    return LayerBlocks{std::move(forward), std::move(backward), std::nullopt};    \
  }
#include "planner/plan/layer_kinds.def"
  Bug("layer kind " + string(1, letter) + " passed the pattern check");
}

// A frozen language model still has a backward when it must hand a gradient to an encoder that learns.
bool Learns(const BlockContext& context, const LanguageSizes& sizes) {
  return context.trains_backbone ||
         std::any_of(sizes.merged.begin(), sizes.merged.end(), [](const MergedRows& rows) { return rows.learns; });
}

}  // namespace

ModuleBlocks LowerLanguage(const HybridLmModel& model, const Module& module, const BlockContext& context,
                           const LanguageSizes& sizes) {
  ModuleBlocks blocks = {LowerLanguageEmbedding(model, context, sizes, module.origin),
                         LowerLanguageHead(model, context, sizes, module.origin),
                         {}};
  // One pair of blocks for all layers of a kind: they differ only in their frames.
  for (const LayerSummary& layer : module.layers) {
    if (!blocks.layers.contains(layer.kind))
      blocks.layers.emplace(layer.kind, LowerLayer(layer.kind, model, context, sizes, module.origin));
  }
  const bool learns = Learns(context, sizes);
  FinishBlocks(blocks.embedding, learns, false);
  FinishBlocks(blocks.head, learns, false);
  for (auto& [kind, layer] : blocks.layers) FinishBlocks(layer, learns, IsRecomputed(module, kind));
  return blocks;
}

std::vector<Symbol> LanguageSymbols(const Module& module, const BlockContext& context, const LanguageSizes& sizes) {
  const string& name = context.module;
  std::vector<Symbol> symbols;
  for (const MergedRows& rows : sizes.merged) {
    symbols.push_back({rows.symbol, sizes.samples * sizes.sequence, "image tokens of a lane's microbatch"});
  }
  if (module.experts() > 0 && context.ep > 1) {
    // A token sends a rank at most top_k rows, and at most one row for each of its experts.
    const int64_t most = std::min(module.top_k(), module.experts() / context.ep);
    // In the worst case all tokens of all ep ranks choose this rank's experts.
    const int64_t rows = sizes.sequence / (context.tp * context.cp) * sizes.samples * most * context.ep;
    symbols.push_back({name + ".expert_rows", rows, "rows that the experts of one rank can receive"});
    if (context.expert_tp > 1) {
      symbols.push_back({name + ".expert_rows_gathered", rows * context.expert_tp,
                         "rows of all ranks that hold parts of the same experts"});
    }
  }
  if (sizes.packed_documents) {
    symbols.push_back({name + ".documents", sizes.samples * sizes.sequence, "documents of a lane's microbatch"});
  }
  return symbols;
}

}  // namespace planwright
