#include "planner/plan/statement/piece_flops.h"

#include <algorithm>
#include <cmath>

#include "planner/plan/op_costs.h"
#include "planner/plan/op_table.h"
#include "planner/plan/sample_images.h"
#include "planner/plan/statement/rank_piece.h"

namespace planwright {
namespace {

struct Sums {
  double all = 0, mixing = 0, adapter = 0, tokens = 0;
};

// Whether the compute is of an adapter: then all of its slots are.
bool IsOfAdapter(const StatedPiece& piece, const RankPiece::Compute& compute) {
  const std::vector<std::string>& slots = compute.instruction.parameters;
  return !slots.empty() && std::any_of(piece.weights.begin(), piece.weights.end(), [&](const StatedWeight& weight) {
    return weight.adapter && weight.slot == slots.front();
  });
}

// `times`: so many samples are of these sizes.
void Add(const StatedPiece& stated, const RankPiece& piece, double tokens, double times, Sums& sums) {
  sums.tokens += tokens * times;
  for (const RankPiece::Compute& compute : piece.computes()) {
    std::vector<RankPiece::Shape> shapes = compute.inputs;
    shapes.insert(shapes.end(), compute.outputs.begin(), compute.outputs.end());
    const double flops = times * OpFlops(compute.instruction, shapes, tokens, /*document_share=*/1);
    sums.all += flops;
    if (InfoOf(compute.instruction.kind).mixing) sums.mixing += flops;
    if (IsOfAdapter(stated, compute)) sums.adapter += flops;
  }
}

// 0 of damaged plans whose sizes give no number.
int64_t Rounded(double flops) { return flops < 9e18 ? std::llround(flops) : 0; }

}  // namespace

PieceFlops FlopsOf(const ModelStatement& statement, const StatedPiece& piece, const Module& module,
                   const ModelNumbers& numbers, const DataPlan& data, int64_t sequence) {
  Sums sums;
  const auto add = [&](double tokens, double times) {
    // One sample: of text, or of one image.
    const std::map<std::string, double> sizes = {
        {"samples", 1}, {"documents", 1}, {"image_rows*", 0}, {"images", 1}, {"patches", tokens}};
    Add(piece, RankPiece(statement, piece, numbers, sizes), tokens, times, sums);
  };
  if (statement.has_images) {
    const EncoderData* encoder = data.FindEncoder(module.name);
    const SampleImages images = encoder ? ImagesOfSample(data, *encoder, sequence) : SampleImages();
    std::map<int64_t, double> images_of_size;  // shares; most images of the data are of few sizes
    for (const ImageSize& size : images.sizes) images_of_size[size.patches] += size.share;
    for (const auto& [patches, times] : images_of_size) add(static_cast<double>(patches), times);
  } else {
    add(static_cast<double>(sequence), 1);
  }
  if (!(sums.tokens > 0)) return {};
  return {Rounded(sums.all / sums.tokens), Rounded(sums.mixing / sums.tokens), Rounded(sums.adapter / sums.tokens)};
}

}  // namespace planwright
