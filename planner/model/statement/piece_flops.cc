#include "planner/model/statement/piece_flops.h"

#include <algorithm>
#include <cmath>

#include "planner/model/statement/rank_piece.h"
#include "planner/plan/op_costs.h"
#include "planner/plan/op_table.h"
#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

struct Sums {
  double all = 0, mixing = 0, tokens = 0;
};

void Add(const RankPiece& piece, double image_rows, double tokens, Sums& sums) {
  sums.tokens += tokens;
  for (const RankPiece::Compute& compute : piece.computes()) {
    std::vector<RankPiece::Shape> shapes = compute.inputs;
    shapes.insert(shapes.end(), compute.outputs.begin(), compute.outputs.end());
    const double flops = OpFlops(compute.instruction, shapes, image_rows);
    sums.all += flops;
    if (InfoOf(compute.instruction.kind).mixing) sums.mixing += flops;
  }
}

// 0 of damaged plans whose sizes give no number.
int64_t Rounded(double flops) { return flops < 9e18 ? std::llround(flops) : 0; }

}  // namespace

PieceFlops FlopsOf(const ModelStatement& statement, const StatedPiece& piece, const Module& module,
                   const ModelNumbers& numbers, const DataPlan& data, int64_t sequence) {
  Sums sums;
  const auto add = [&](double tokens) {
    // One sample: of text, or of one image.
    const std::map<std::string, double> sizes = {
        {"samples", 1}, {"documents", 1}, {"image_rows*", 0}, {"images", 1}, {"patches", tokens}};
    Add(RankPiece(statement, piece, numbers, sizes), tokens, tokens, sums);
  };
  if (statement.has_images) {
    const EncoderData* encoder = data.FindEncoder(module.name);
    const SampleImages images = encoder ? ImagesOfSample(data, *encoder, sequence) : SampleImages();
    for (int64_t patches : images.patches) add(static_cast<double>(patches));
  } else {
    add(static_cast<double>(sequence));
  }
  if (!(sums.tokens > 0)) return {};
  return {Rounded(sums.all / sums.tokens), Rounded(sums.mixing / sums.tokens)};
}

}  // namespace planwright
