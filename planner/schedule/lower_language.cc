#include "planner/schedule/lower_language.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "planner/diagnostics/bug.h"
#include "planner/schedule/block_passes.h"

namespace planwright {
namespace {

using std::string;

// Which rows belong to this rank's image positions follows from all tokens of the lane, so they are read whole and cut
// here. Of the rows' gradient every cp rank makes those of its own positions; they are summed over cp (each row has one
// term) rather than gathered with the gradient of all positions: the message is as long as there are images, and
// nothing of the whole sequence is held.
LayerBlocks LowerEmbedding(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                           int origin) {
  const int64_t S = sizes.sequence / context.cp;
  const Attributes image_token = {{"image_token", sizes.image_token}};
  const auto whole = [&](const BlockBuilder& b, Layout tp) {  // over tp
    return b.Activation({S, sizes.samples, *model.hidden}, OverCp(context, 0, std::move(tp)),
                        OverCp(context, 0, Replicated()));
  };
  const auto merge = [&](const MergedRows& rows) { return PositionAttributes(context, {{"image_token", rows.token}}); };
  const auto named = [&](const char* name, const MergedRows& rows) {
    return sizes.merged.size() == 1 ? name : absl::StrCat(name, ".", rows.name);
  };

  BlockBuilder f(context, context.module + ".embed.forward", origin);
  f.Input("tokens", f.Data(DType::kInt64, {sizes.samples, sizes.sequence}));
  for (const MergedRows& rows : sizes.merged) {
    ValueType type = f.Whole({rows.symbol, *model.hidden});
    if (!rows.learns) type.gradient.reset();  // beside another encoder that does
    f.Input(rows.name, type);
  }
  const string tokens = f.Slice("tokens", 1, "tokens_local", Axis::kCp);
  f.Make(OpKind::kEmbedTokens, {.inputs = {tokens}, .parameters = {"embeddings"}, .attributes = image_token}, "e_part",
         whole(f, Partial(context)));
  string e = f.AllReduce("e_part", "e");
  std::vector<string> saved = {tokens};
  for (const MergedRows& rows : sizes.merged) {
    const string merged = named("x_full", rows), positions = named("positions", rows);
    f.Emit(OpKind::kMergeImages, {.inputs = {e, rows.name, "tokens"}, .attributes = merge(rows)},
           {{merged, whole(f, Replicated())}, {positions, f.Data(DType::kInt64, {rows.symbol})}});
    e = merged;
    saved.push_back(positions);
  }
  const string x = f.Slice(e, 0, "x");
  Block forward = f.Finish({x}, saved);

  BlockBuilder b(context, context.module + ".embed.backward", origin);
  b.TakeSaved(forward);
  b.Input("dx", StreamType(b, S / context.tp, sizes.samples, model.hidden));
  string de = b.AllGather("dx", 0, "dx_full", Replicated());
  std::vector<string> outputs;
  // What was merged last is taken apart first; gradients are handed on in the order of the rows.
  for (auto at = sizes.merged.rbegin(); at != sizes.merged.rend(); ++at) {
    const MergedRows& rows = *at;
    ValueType drows = b.Whole({rows.symbol, *model.hidden});
    drows.layout = Partial(context, {Axis::kCp});
    const string part = context.cp > 1 ? rows.gradient_name + "_part" : rows.gradient_name, rest = named("de", rows);
    b.Emit(OpKind::kMergeImagesGrad, {.inputs = {de, named("positions", rows)}, .attributes = merge(rows)},
           {{rest, whole(b, Replicated())}, {part, drows}});
    de = rest;
    if (rows.learns) outputs.insert(outputs.begin(), b.AllReduce(part, rows.gradient_name, "sum", {Axis::kCp}));
  }
  if (context.trains_backbone)
    b.Emit(OpKind::kEmbedTokensGrad, {.inputs = {de, tokens}, .gradients = {"embeddings"}, .attributes = image_token});
  return {std::move(forward), b.Finish(std::move(outputs), {}), std::nullopt};
}

// Each cp rank has the loss of its own positions; labels and mask are read whole and never cut over tp (facts 10).
LayerBlocks LowerHead(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes, int origin) {
  const int64_t S = sizes.sequence / context.cp, B = sizes.samples, H = model.hidden, tp = context.tp;
  BlockBuilder f(context, context.module + ".head.forward", origin);
  f.Input("x", StreamType(f, S / tp, B, H));
  f.Input("labels", f.Data(DType::kInt64, {B, sizes.sequence}));
  f.Input("loss_mask", f.Data(context.dtype, {B, sizes.sequence}));
  const string labels = f.Slice("labels", 1, "labels_local", Axis::kCp),
               mask = f.Slice("loss_mask", 1, "loss_mask_local", Axis::kCp);
  const auto [n, scale] = EmitRmsNorm(f, "x", "norm", model.norm_eps);
  const string n_full = f.AllGather(n, 0, "n_full", Partial(context));
  const Layout cut = OverCp(context, 0, Sharded(context, 2));
  f.Make(OpKind::kLinear, {.inputs = {n_full}, .parameters = {"lm_head"}}, "logits",
         f.Activation({S, B, model.vocabulary / tp}, cut, cut));
  ValueType statistic = f.Data(context.wide(), {S, B}), loss = f.Data(DType::kFp64, {int64_t{1}});
  statistic.layout = OverCp(context, 0, Partial(context));
  f.Make(OpKind::kCrossEntropyMax, {.inputs = {"logits"}}, "m_part", statistic);
  const string m = f.AllReduce("m_part", "m", "max");
  statistic.dims = {int64_t{2}, S, B};
  statistic.layout = OverCp(context, 1, Partial(context));
  f.Make(OpKind::kCrossEntropySums, {.inputs = {"logits", m, labels}}, "sums_part", statistic);
  const string sums = f.AllReduce("sums_part", "sums");
  statistic.dims = {S, B};
  statistic.layout = OverCp(context, 0, Replicated());
  loss.layout = Partial(context, {Axis::kCp});
  f.Emit(OpKind::kTokenLoss, {.inputs = {sums, mask}}, {{"token_loss", statistic}, {"loss", loss}});
  f.Accumulate("loss", "$reals.loss", {Axis::kTp});
  f.ProbeValue("logits", "logits");
  f.ProbeValue("token_loss", "token_loss");
  f.ProbeValue("loss", "loss_sum");
  Block forward = f.Finish({}, {"x", scale, n_full, "logits", m, sums, labels, mask});

  BlockBuilder b(context, context.module + ".head.backward", origin);
  b.TakeSaved(forward);
  b.Make(OpKind::kCrossEntropyGrad, {.inputs = {"logits", m, sums, labels, mask}}, "dlogits", b.TypeOf("logits"));
  b.LinearWeightGrad("dlogits", n_full, "lm_head");
  b.Make(OpKind::kLinearInputGrad, {.inputs = {"dlogits"}, .parameters = {"lm_head"}}, "dn_part",
         PartialType(b, S, B, H));
  const string dn = b.ReduceScatter("dn_part", 0, "dn");
  b.Make(OpKind::kRmsNormGrad, {.inputs = {dn, "x", scale}, .parameters = {"norm"}, .gradients = b.Trained({"norm"})},
         "dx", b.TypeOf("x"));
  return {std::move(forward), b.Finish({"dx"}, {}), std::nullopt};
}

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

// A module none of whose parts learns, and behind which nothing does, has no backward.
bool Learns(const BlockContext& context, const LanguageSizes& sizes) {
  return context.trains_backbone ||
         std::any_of(sizes.merged.begin(), sizes.merged.end(), [](const MergedRows& rows) { return rows.learns; });
}

}  // namespace

ValueType StreamType(const BlockBuilder& b, int64_t s, int64_t samples, int64_t hidden) {
  const Layout layout = OverCp(b.context(), 0, Sharded(b.context(), 0));
  return b.Activation({s, samples, hidden}, layout, layout);
}

ValueType PartialType(const BlockBuilder& b, int64_t sequence, int64_t samples, int64_t hidden) {
  const BlockContext& context = b.context();
  return b.Activation({sequence, samples, hidden}, OverCp(context, 0, Partial(context)),
                      OverCp(context, 0, Replicated()));
}

void InputDocuments(BlockBuilder& f, const LanguageSizes& sizes) {
  if (sizes.packed_documents)
    f.Input("document_ends", f.Data(DType::kInt64, {f.context().module + ".documents"}, true));
}

std::vector<string> WithDocuments(std::vector<string> values, const LanguageSizes& sizes) {
  if (sizes.packed_documents) values.push_back("document_ends");
  return values;
}

NormNames EmitRmsNorm(BlockBuilder& f, const string& x, const string& slot, double eps) {
  ValueType type = f.TypeOf(x), scale = type;
  scale.dtype = f.context().wide();
  scale.dims.back() = int64_t{1};
  scale.gradient = std::nullopt;
  f.Emit(OpKind::kRmsNorm, {.inputs = {x}, .parameters = {slot}, .attributes = {{"eps", eps}}},
         {{"n", type}, {"n_scale", scale}});
  return {"n", "n_scale"};
}

ModuleBlocks LowerLanguage(const HybridLmModel& model, const Module& module, const BlockContext& context,
                           const LanguageSizes& sizes) {
  ModuleBlocks blocks = {
      LowerEmbedding(model, context, sizes, module.origin), LowerHead(model, context, sizes, module.origin), {}};
  for (const LayerSummary& layer : module.layers) {
    if (!blocks.layers.contains(layer.kind))
      blocks.layers.emplace(layer.kind, LowerLayer(layer.kind, model, context, sizes, module.origin));
  }
  const bool learns = Learns(context, sizes);
  FinishBlocks(blocks.embedding, learns, false);
  FinishBlocks(blocks.head, learns, false);
  for (auto& [kind, layer] : blocks.layers) FinishBlocks(layer, learns, Recomputes(module, kind));
  return blocks;
}

std::vector<Symbol> LanguageSymbols(const Module& module, const BlockContext& context, const LanguageSizes& sizes) {
  const string& name = context.module;
  std::vector<Symbol> symbols;
  for (const MergedRows& rows : sizes.merged) {
    symbols.push_back({rows.symbol, sizes.samples * sizes.sequence, "image tokens of a lane's microbatch"});
  }
  if (module.experts() > 0 && context.ep > 1) {
    // A token goes to one rank at most as often as that rank has experts it wants.
    const int64_t most = std::min(module.top_k(), module.experts() / context.ep);
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
