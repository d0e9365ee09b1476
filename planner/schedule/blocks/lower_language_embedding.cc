// The language model's embedding: token embedding, and the merge of encoder rows into the text
// (docs/model/language_model.md#token-embedding, docs/model/vision_encoder.md#merge-into-text).
#include "absl/strings/str_cat.h"
#include "planner/schedule/blocks/language_pieces.h"

namespace planwright {

using std::string;

// Over cp: which encoder rows belong to this rank's positions follows from all tokens of the lane. So tokens are read
// whole and cut here. In the backward each cp rank makes the gradient of the rows at its own positions, and the rows
// are summed over cp; each row has one nonzero term. That message is as long as the images, while gathering the
// gradient of all positions would hold the whole sequence.
LayerBlocks LowerLanguageEmbedding(const HybridLmModel& model, const BlockContext& context, const LanguageSizes& sizes,
                                   int origin) {
  const int64_t S = sizes.sequence / context.cp;
  const Attributes image_token = {{"image_token", sizes.image_token}};
  // All positions of this cp rank; `tp`: layout over tp.
  const auto whole = [&](const BlockBuilder& b, Layout tp) {
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
    if (!rows.learns) type.gradient.reset();  // a frozen encoder beside one that learns
    f.Input(rows.name, type);
  }
  const string tokens = f.Slice("tokens", 1, "tokens_local", Axis::kCp);
  f.Make(OpKind::kEmbedTokens, {.inputs = {tokens}, .parameters = {"embeddings"}, .attributes = image_token}, "e_part",
         whole(f, Partial(context)));
  std::vector<string> saved = {tokens};
  // An image row can belong to any position, so a merge needs all of them. Without images a tp rank needs only its own.
  string e = sizes.merged.empty() ? f.ReduceScatter("e_part", 0, "x") : f.AllReduce("e_part", "e");
  for (const MergedRows& rows : sizes.merged) {
    const string merged = named("x_full", rows), positions = named("positions", rows);
    f.Emit(OpKind::kMergeImages, {.inputs = {e, rows.name, "tokens"}, .attributes = merge(rows)},
           {{merged, whole(f, Replicated())}, {positions, f.Data(DType::kInt64, {rows.symbol})}});
    e = merged;
    saved.push_back(positions);
  }
  if (!sizes.merged.empty()) e = f.Slice(e, 0, "x");
  Block forward = f.Finish({e}, saved);

  BlockBuilder b(context, context.module + ".embed.backward", origin);
  b.TakeSaved(forward);
  b.InputGradient("dx", StreamType(b, S / context.tp, sizes.samples, model.hidden));
  string de = b.AllGather("dx", 0, "dx_full", Replicated());
  std::vector<string> outputs;
  // The forward merges one encoder after the other, so the backward takes the last merge apart first. The outputs keep
  // the order of `merged`.
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

}  // namespace planwright
