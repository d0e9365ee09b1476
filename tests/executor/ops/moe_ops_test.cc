// Router, order of rows and experts against dense references and golden cases.
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "executor/ops/expert_rows.h"
#include "tests/executor/ops/reference.h"
#include "tests/executor/ops/run_op.h"
#include "tests/support/folders.h"

namespace planwright::executor {
namespace {

constexpr int64_t kPositions = 5, kSamples = 2, kTokens = 10, kHidden = 4, kExperts = 6, kFfn = 3, kTopK = 3;
constexpr double kScale = 2.5, kAuxScale = 0.7;

Attributes RouteAttributes(int64_t top_k) { return {{"top_k", top_k}, {"scale", kScale}}; }
Attributes RouteGradAttributes(int64_t top_k) {
  return {{"top_k", top_k}, {"scale", kScale}, {"sequence", kPositions}, {"aux_scale", kAuxScale}};
}
const Attributes kRowAttributes = {{"top_k", kTopK}, {"sequence", kPositions}, {"samples", kSamples}};

const nlohmann::json& Golden() {
  static const nlohmann::json golden =
      nlohmann::json::parse(std::ifstream(InSource("tests/golden/upstream_public.json")))["derived"];
  return golden;
}

at::Tensor Matrix(const nlohmann::json& rows) {
  Tensors list;
  for (const auto& row : rows) list.push_back(at::tensor(row.get<std::vector<double>>(), at::kDouble));
  return at::stack(list);
}
at::Tensor Integers(const nlohmann::json& list) { return at::tensor(list.get<std::vector<int64_t>>(), at::kLong); }

// [T,k] by slot -> [T,E].
at::Tensor Spread(const at::Tensor& values, const at::Tensor& ids, int64_t experts) {
  return at::zeros({ids.size(0), experts}, at::kDouble).scatter_(1, ids, values.to(at::kDouble));
}

TEST(Route, MeetsTheGoldenRouter) {
  const nlohmann::json& golden = Golden()["router"];
  const at::Tensor logits = Matrix(golden["logits"]),
                   eye = at::arange(4, at::kLong).view({4, 1}).eq(at::arange(4, at::kLong)).to(at::kDouble);
  const at::Tensor bias = at::tensor(golden["expert_bias"].get<std::vector<double>>(), at::kDouble);
  // hidden = logits
  const Tensors out = Op(RouteAttributes(2)).Run(ops::RunRoute, {logits.view({2, 2, 4})}, {eye, bias});
  EXPECT_LT(Gap(Spread(out[0], out[1], 4), Matrix(golden["probs"])), 1e-15);
  EXPECT_EQ(Gap(Spread(at::ones_like(out[0]), out[1], 4), Matrix(golden["map"])), 0);
  EXPECT_EQ(Gap(out[2], Integers(golden["tokens_per_expert"])), 0);
  // token = position * 2 + sample
  EXPECT_EQ(Gap(out[4], Matrix(golden["map_without_bias"]).view({2, 2, 4}).sum(0)), 0);
  EXPECT_EQ(out[4].scalar_type(), at::kLong);

  const nlohmann::json& aux = Golden()["seq_aux_loss"];
  const Tensors loss =
      Op({{"sequence", int64_t{2}}, {"top_k", int64_t{2}}}).Run(ops::RunSequenceAuxLoss, {out[3], out[4]});
  EXPECT_EQ(loss[0].scalar_type(), at::kDouble);
  EXPECT_NEAR(loss[0].item<double>() / 2, aux["logged"].get<double>(), 1e-15);  // the mean over two samples
}

TEST(Route, TiesGoToTheLowerExpert) {
  const at::Tensor n = Random({1, 2, 3}).fill_(1), gate = Random({40, 3}).fill_(0.25),
                   bias = at::zeros({40}, at::kDouble);
  bias[7].fill_(0.125);
  const Tensors out = Op(RouteAttributes(3)).Run(ops::RunRoute, {n}, {gate, bias});
  EXPECT_EQ(Gap(out[1], at::tensor({7, 0, 1, 7, 0, 1}, at::kLong).view({2, 3})), 0);
  EXPECT_EQ(out[4].narrow(1, 0, 3).sum().item<int64_t>(), 6);  // without the bias: 0, 1, 2
}

TEST(Route, StatisticsDoNotDependOnTheCutOverTp) {
  const at::Tensor n = Random({4, 2, kHidden}), gate = Random({kExperts, kHidden}), bias = Random({kExperts});
  const auto run = [&](const at::Tensor& x) {
    return Op(RouteAttributes(kTopK)).Run(ops::RunRoute, {x}, {gate, bias});
  };
  const Tensors whole = run(n), first = run(n.narrow(0, 0, 2)), second = run(n.narrow(0, 2, 2));
  EXPECT_EQ(Gap(at::cat({first[1], second[1]}), whole[1]), 0);
  EXPECT_EQ(Gap(first[2] + second[2], whole[2]), 0);
  EXPECT_EQ(Gap(first[4] + second[4], whole[4]), 0);
  Op aux({{"sequence", int64_t{4}}, {"top_k", kTopK}});
  EXPECT_SAME(aux.Run(ops::RunSequenceAuxLoss, {first[3], whole[4]})[0] +
                  aux.Run(ops::RunSequenceAuxLoss, {second[3], whole[4]})[0],
              aux.Run(ops::RunSequenceAuxLoss, {whole[3], whole[4]})[0]);
}

// Forward and backward of both rules. `attribute`: what the instruction says; none: what plans from before mean.
void ExpectWeights(int64_t top_k, bool normalized, std::optional<int64_t> attribute) {
  SCOPED_TRACE(std::to_string(top_k) + (normalized ? " divided" : " undivided"));
  const at::Tensor n = Leaf(Random({kPositions, kSamples, kHidden})), gate = Leaf(Random({kExperts, kHidden})),
                   bias = Random({kExperts});
  const reference::Routing routing =
      reference::Route(n.view({kTokens, kHidden}), gate, bias, top_k, normalized, kScale);
  Attributes forward = RouteAttributes(top_k), backward = RouteGradAttributes(top_k);
  if (attribute) forward["normalized"] = backward["normalized"] = *attribute;
  const Tensors out = Op(forward).Run(ops::RunRoute, {n.detach()}, {gate.detach(), bias});
  EXPECT_SAME(Spread(out[0], out[1], kExperts), routing.weights);
  const at::Tensor dweights = Random({kTokens, top_k});
  ((routing.weights * Spread(dweights, out[1], kExperts)).sum() +
   kAuxScale * reference::AuxLoss(routing, kSamples, top_k))
      .backward();
  const Tensors gradients = FilledGradients({gate});
  const Tensors grads = Op(backward).Run(ops::RunRouteGrad, {dweights, n.detach(), out[0], out[1], out[5], out[4]},
                                         {gate.detach()}, gradients);
  EXPECT_SAME(grads[0], n.grad());
  EXPECT_SAME(Added(gradients[0]), gate.grad());
}

TEST(Route, WeightsAreDividedByTheirSumOrNot) {
  for (const int64_t top_k : {int64_t{1}, kTopK, kExperts}) {
    ExpectWeights(top_k, top_k > 1, std::nullopt);
    ExpectWeights(top_k, true, 1);
    ExpectWeights(top_k, false, 0);
  }
}

// Divided by itself the score of one expert has no gradient: not even that of a rounding, from which Adam would make
// steps of full size.
TEST(Route, OneDividedScoreHasNoGradient) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat}) {
    const at::Tensor n = Random({kPositions, kSamples, kHidden}).to(dtype),
                     gate = Random({kExperts, kHidden}).to(dtype), bias = Random({kExperts}).to(dtype);
    Attributes attributes = RouteAttributes(1);
    attributes["normalized"] = int64_t{1};
    const Tensors out = Op(attributes).Run(ops::RunRoute, {n}, {gate, bias});
    EXPECT_EQ(Gap(out[0], at::ones_like(out[0]) * kScale), 0);
    const Tensors gradients = {at::zeros_like(gate)};
    const at::Tensor dn =
        Op(attributes)
            .Run(ops::RunRouteGrad, {Random({kTokens, 1}).to(dtype), n, out[0], out[1], out[5]}, {gate}, gradients)[0];
    EXPECT_LT(dn.abs().max().item<double>(), 1e-18);
    EXPECT_LT(gradients[0].abs().max().item<double>(), 1e-18);
  }
}

// One rank has all experts: route, permute, experts, unpermute and all their gradients, with the auxiliary loss.
TEST(Moe, WholeLayerMeetsDenseExperts) {
  const at::Tensor n = Leaf(Random({kPositions, kSamples, kHidden})), gate = Leaf(Random({kExperts, kHidden}));
  const at::Tensor up = Leaf(Random({kExperts, kFfn, kHidden})), down = Leaf(Random({kExperts, kHidden, kFfn}));
  const at::Tensor bias = Random({kExperts}) * 0.3, dy = Random({kPositions, kSamples, kHidden});
  const at::Tensor tokens = n.view({kTokens, kHidden});
  const reference::Routing routing = reference::Route(tokens, gate, bias, kTopK, true, kScale);
  const at::Tensor y = reference::DenseExperts(tokens, routing.weights, up, down);
  const at::Tensor aux = reference::AuxLoss(routing, kSamples, kTopK);
  ((y * dy.view_as(y)).sum() + kAuxScale * aux).backward();

  const at::Tensor x = n.detach();
  const Tensors matrices = {up.detach(), down.detach()};
  const Tensors route = Op(RouteAttributes(kTopK)).Run(ops::RunRoute, {x}, {gate.detach(), bias});
  EXPECT_SAME(Spread(route[0], route[1], kExperts), routing.weights);
  EXPECT_SAME(route[3], routing.probs);
  EXPECT_EQ(Gap(route[2], routing.chosen.sum(0)), 0);
  EXPECT_SAME(Op({{"sequence", kPositions}, {"top_k", kTopK}}).Run(ops::RunSequenceAuxLoss, {route[3], route[4]})[0],
              aux.detach().view({1}));
  const Tensors rows = Op().Run(ops::RunPermuteRows, {x, route[0], route[1]});
  const Tensors experts = Op().Run(ops::RunExperts, {rows[0], rows[1], route[2]}, matrices);
  const at::Tensor combined = Op(kRowAttributes).Run(ops::RunUnpermuteRows, {experts[0], rows[2]})[0];
  EXPECT_SAME(combined.view_as(y), y);

  const Tensors gradients = FilledGradients({gate, up, down});
  const at::Tensor dout = Op({{"top_k", kTopK}}).Run(ops::RunUnpermuteRowsGrad, {dy, rows[2]})[0];
  const Tensors dexperts = Op().Run(ops::RunExpertsGrad, {dout, rows[0], rows[1], experts[1], route[2]}, matrices,
                                    {gradients[1], gradients[2]});
  const Tensors drows = Op(kRowAttributes).Run(ops::RunPermuteRowsGrad, {dexperts[0], dexperts[1], rows[2]});
  const at::Tensor droute = Op(RouteGradAttributes(kTopK))
                                .Run(ops::RunRouteGrad, {drows[1], x, route[0], route[1], route[5], route[4]},
                                     {gate.detach()}, {gradients[0]})[0];
  EXPECT_SAME(drows[0] + droute, n.grad());
  EXPECT_SAME(Added(gradients[0]), gate.grad());
  EXPECT_SAME(Added(gradients[1]), up.grad());
  EXPECT_SAME(Added(gradients[2]), down.grad());
}

// The golden dispatch between two expert ranks: what each one sends, and how it sorts what it receives.
TEST(Dispatch, MeetsTheGoldenOrder) {
  const nlohmann::json& golden = Golden()["dispatch_ep2"];
  for (const std::string rank : {"0", "1"}) {
    const nlohmann::json& plan = golden["plan"][rank];
    const at::Tensor map = Matrix(golden["maps"][rank]);
    const at::Tensor ids = map.nonzero().select(1, 1).contiguous().view({3, 2});
    const Tensors out = Op().Run(ops::RunPermuteRows, {Random({3, 1, 2}), Random({3, 2}), ids});
    EXPECT_EQ(Gap(out[2].div(2, "floor"), Integers(plan["permuted_token_index"])), 0);
    EXPECT_EQ(Gap(ids.reshape({-1}).index_select(0, out[2]), Integers(plan["expert_of_row"])), 0);

    const int64_t first = rank == "0" ? 0 : 2;  // local experts
    Tensors counts;
    for (const std::string source : {"0", "1"}) {
      counts.push_back(Integers(golden["plan"][source]["tokens_per_expert"]).narrow(0, first, 2));
    }
    const ops::ExpertRows rows(at::stack(counts), 2, 6, at::kCPU);
    const at::Tensor received = Matrix(plan["received_order_src_expert_token"]);
    EXPECT_EQ(Gap(rows.Sort(received), Matrix(plan["after_sort_by_local_expert"])), 0);
    EXPECT_EQ(Gap(rows.Unsort(rows.Sort(received)), received), 0);
    for (int64_t e = 0; e < 2; ++e) EXPECT_EQ(rows.length(e), plan["rows_per_local_expert"][e].get<int64_t>());
  }
}

// Tokens of several ranks with E experts; each rank has an equal part of both.
struct AllRanks {
  static constexpr int64_t kRanks = 4, kOfRank = 6, kExperts = 8, kK = 3;  // positions of a rank, with 1 sample
  at::Tensor n = Random({kRanks * kOfRank, 1, kHidden}), weights = Random({kRanks * kOfRank, kK}),
             ids = Random({kRanks * kOfRank, kExperts}).argsort(int64_t{-1}).narrow(1, 0, kK).contiguous();
  Attributes attributes = {{"top_k", kK}, {"sequence", kRanks* kOfRank}, {"samples", int64_t{1}}};

  // What each source sends to the experts of `rank`, [P, L].
  at::Tensor CountsOf(int64_t rank) const {
    at::Tensor counts = at::zeros({kRanks, kExperts / kRanks}, at::kLong);
    for (int64_t source = 0; source < kRanks; ++source) {
      counts[source] = at::bincount(ids.narrow(0, source * kOfRank, kOfRank).reshape({-1}), {}, kExperts)
                           .narrow(0, rank * kExperts / kRanks, kExperts / kRanks);
    }
    return counts;
  }
  Tensors Select(int64_t rank) const {
    return Op().OnEpRank(static_cast<int>(rank), kRanks).Run(ops::RunSelectRows, {n, weights, ids, CountsOf(rank)});
  }
};

// The rows of a rank, in the order in which all_to_all_v of permuted rows brings them.
TEST(Dispatch, SelectedRowsAreThoseThatWouldBeSent) {
  const AllRanks all;
  std::vector<Tensors> permuted;
  for (int64_t source = 0; source < AllRanks::kRanks; ++source) {
    const auto own = [&](const at::Tensor& x) { return x.narrow(0, source * AllRanks::kOfRank, AllRanks::kOfRank); };
    permuted.push_back(Op().Run(ops::RunPermuteRows, {own(all.n), own(all.weights), own(all.ids)}));
  }
  for (int64_t rank = 0; rank < AllRanks::kRanks; ++rank) {
    const Tensors selected = all.Select(rank);
    Tensors rows, weights;
    for (int64_t source = 0; source < AllRanks::kRanks; ++source) {
      int64_t before = 0;
      for (int64_t other = 0; other < rank; ++other) before += all.CountsOf(other)[source].sum().item<int64_t>();
      const int64_t sent = all.CountsOf(rank)[source].sum().item<int64_t>();
      rows.push_back(permuted[source][0].narrow(0, before, sent));
      weights.push_back(permuted[source][1].narrow(0, before, sent));
    }
    EXPECT_TRUE(selected[0].equal(at::cat(rows)));
    EXPECT_TRUE(selected[1].equal(at::cat(weights)));
  }
}

// The sum over ranks of what each makes is what one rank makes of all tokens, forward and backward.
TEST(Dispatch, TermsOfAllRanksAddUpToOneRank) {
  const AllRanks all;
  const Tensors whole = Op().Run(ops::RunPermuteRows, {all.n, all.weights, all.ids});
  // A result for each slot, whatever row it is in.
  const at::Tensor results = Random({all.ids.numel(), kHidden}), slopes = Random({all.ids.numel()});
  const at::Tensor out = results.index_select(0, whole[2]);
  const at::Tensor y = Op(all.attributes).Run(ops::RunUnpermuteRows, {out, whole[2]})[0];
  const Tensors dn = Op(all.attributes).Run(ops::RunPermuteRowsGrad, {out, slopes.index_select(0, whole[2]), whole[2]});
  at::Tensor y_sum = at::zeros_like(y), dn_sum = at::zeros_like(dn[0]), dweights_sum = at::zeros_like(dn[1]);
  for (int64_t rank = 0; rank < AllRanks::kRanks; ++rank) {
    const at::Tensor order = all.Select(rank)[2];
    const at::Tensor mine = results.index_select(0, order);
    y_sum += Op(all.attributes).Run(ops::RunCombineRows, {mine, order})[0];
    const Tensors grads = Op(all.attributes).Run(ops::RunSelectRowsGrad, {mine, slopes.index_select(0, order), order});
    dn_sum += grads[0];
    dweights_sum += grads[1];
    // Each row of the experts gets the gradient of its token.
    const at::Tensor dout = Op({{"top_k", AllRanks::kK}}).Run(ops::RunCombineRowsGrad, {all.n, order})[0];
    EXPECT_TRUE(dout.equal(all.Select(rank)[0]));
  }
  EXPECT_SAME(y_sum, y);
  EXPECT_SAME(dn_sum, dn[0]);
  EXPECT_TRUE(dweights_sum.equal(dn[1]));
}

// In bf16 the terms of ranks are fp32, so that their sum, rounded once, is what one rank makes. The two differ where
// the order of fp32 additions decides a rounding.
TEST(Dispatch, TermsOfAllRanksAreRoundedOnce) {
  const AllRanks all;
  const at::Tensor whole = Op().Run(ops::RunPermuteRows, {all.n, all.weights, all.ids})[2];
  const at::Tensor results = Random({all.ids.numel(), kHidden}).to(at::kBFloat16);
  const at::Tensor y = Op(all.attributes).Run(ops::RunUnpermuteRows, {results.index_select(0, whole), whole})[0];
  at::Tensor sum = at::zeros(y.sizes(), at::kFloat), rounded = at::zeros_like(sum);
  for (int64_t rank = 0; rank < AllRanks::kRanks; ++rank) {
    const at::Tensor order = all.Select(rank)[2], rows = results.index_select(0, order);
    const at::Tensor term = Op(all.attributes).Run(ops::RunCombineRows, {rows, order})[0];
    EXPECT_EQ(term.scalar_type(), at::kFloat);
    EXPECT_EQ(Op(all.attributes)
                  .Run(ops::RunSelectRowsGrad, {rows, Random({rows.size(0)}).to(at::kFloat), order})[0]
                  .scalar_type(),
              at::kFloat);
    sum += term;
    rounded += term.to(at::kBFloat16).to(at::kFloat);
  }
  const auto others = [&](const at::Tensor& x) { return x.to(at::kBFloat16).ne(y).sum().item<int64_t>(); };
  EXPECT_LE(others(sum), y.numel() / 100);
  EXPECT_GT(others(rounded), y.numel() / 20);  // so the test sees terms that are rounded before
}

TEST(Dispatch, NoRowsAndWrongCountsOfGatheredTokens) {
  AllRanks all;
  all.ids = all.ids.remainder(2);  // only the experts of rank 0
  const Tensors none = all.Select(3);
  EXPECT_EQ(none[0].sizes(), (std::vector<int64_t>{0, kHidden}));
  EXPECT_TRUE(Op(all.attributes).Run(ops::RunCombineRows, {none[0], none[2]})[0].equal(at::zeros_like(all.n)));
  EXPECT_THROW(
      Op().OnEpRank(3, AllRanks::kRanks).Run(ops::RunSelectRows, {all.n, all.weights, all.ids, all.CountsOf(0)}),
      c10::Error);
  EXPECT_THROW(Op().OnEpRank(0, 2).Run(ops::RunSelectRows, {all.n, all.weights, all.ids, all.CountsOf(0)}), c10::Error);
}

TEST(Experts, RowsOfThreeSourcesMeetOneRowAtATime) {
  // one source sends nothing to an expert
  const at::Tensor counts = at::tensor({2, 0, 3, 1, 0, 0, 0, 4, 1}, at::kLong).view({3, 3});
  const std::vector<int64_t> expert_of_row = {0, 0, 2, 2, 2, 0, 1, 1, 1, 1, 2};
  const at::Tensor rows = Leaf(Random({11, kHidden})), weights = Leaf(Random({11}));
  const at::Tensor up = Leaf(Random({3, kFfn, kHidden})), down = Leaf(Random({3, kHidden, kFfn})),
                   dout = Random({11, kHidden});
  Tensors expected;
  for (int64_t i = 0; i < 11; ++i) {
    const at::Tensor h = up[expert_of_row[i]].matmul(rows[i]).relu();
    expected.push_back(down[expert_of_row[i]].matmul(h * h * weights[i]));
  }
  (at::stack(expected) * dout).sum().backward();

  const Tensors matrices = {up.detach(), down.detach()};
  const Tensors out = Op().Run(ops::RunExperts, {rows.detach(), weights.detach(), counts}, matrices);
  EXPECT_SAME(out[0], at::stack(expected));
  EXPECT_EQ(out[1].sizes(), at::IntArrayRef({11, kFfn}));
  const Tensors gradients = FilledGradients(matrices);
  const Tensors grads =
      Op().Run(ops::RunExpertsGrad, {dout, rows.detach(), weights.detach(), out[1], counts}, matrices, gradients);
  EXPECT_SAME(grads[0], rows.grad());
  EXPECT_SAME(grads[1], weights.grad());
  EXPECT_SAME(Added(gradients[0]), up.grad());
  EXPECT_SAME(Added(gradients[1]), down.grad());
}

// The first gradients of a step are written over whatever the step before has left, also those of an expert without
// rows.
TEST(Experts, FirstGradientsAreWritten) {
  for (const bool gated : {false, true}) {
    for (const auto& rows_of : {std::vector<int64_t>{2, 0, 3, 1, 0, 0, 0, 0, 1}, std::vector<int64_t>(9, 0)}) {
      const at::Tensor counts = at::tensor(rows_of, at::kLong).view({3, 3});
      const int64_t rows = counts.sum().item<int64_t>();
      const Tensors matrices = {Random({3, (gated ? 2 : 1) * kFfn, kHidden}), Random({3, kHidden, kFfn})};
      const Tensors inputs = {Random({rows, kHidden}), Random({rows, kHidden}), Random({rows}),
                              Random({rows, matrices[0].size(1)}), counts};
      Tensors left, added;
      for (const at::Tensor& matrix : matrices)
        left.push_back(at::full_like(matrix, NAN)), added.push_back(at::zeros_like(matrix));
      const Handler handler = gated ? ops::RunGatedExpertsGrad : ops::RunExpertsGrad;
      Op op({{"ffn", kFfn}});
      op.Run(handler, inputs, matrices, added);
      op.Writing().Run(handler, inputs, matrices, left);
      for (size_t i = 0; i < left.size(); ++i) EXPECT_TRUE(left[i].equal(added[i])) << rows << " rows, gradient " << i;
    }
  }
}

TEST(Experts, NoRowsAndWrongCounts) {
  const at::Tensor none = at::zeros({2, 3}, at::kLong);
  const Tensors matrices = {Random({3, kFfn, kHidden}), Random({3, kHidden, kFfn})},
                gradients = FilledGradients(matrices);
  const Tensors out = Op().Run(ops::RunExperts, {Random({0, kHidden}), Random({0}), none}, matrices);
  EXPECT_EQ(out[0].sizes(), at::IntArrayRef({0, kHidden}));
  Op().Run(ops::RunExpertsGrad, {out[0], out[0], Random({0}), out[1], none}, matrices, gradients);
  EXPECT_EQ(Gap(Added(gradients[0]), at::zeros_like(matrices[0])), 0);
  EXPECT_THROW(Op().Run(ops::RunExperts, {Random({1, kHidden}), Random({1}), none}, matrices), c10::Error);
}

// With expert_tp each rank has a part of the width of every expert and the rows of the whole group: outputs and
// gradients of rows are terms of sums, gradients of weights are parts.
TEST(Experts, PartsOfExpertTpAddUpToWholeExperts) {
  // By source (expert_tp, then ep) and expert: uneven; two sources send nothing; all rows to one expert; no rows at
  // all.
  const std::vector<std::vector<int64_t>> tables = {{2, 0, 3, 1, 0, 0, 0, 4, 1, 0, 1, 0},
                                                    {0, 0, 0, 1, 2, 3, 0, 0, 0, 4, 0, 1},
                                                    {0, 3, 0, 0, 5, 0, 0, 1, 0, 0, 2, 0},
                                                    {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
  constexpr int64_t ffn = 4;
  for (const std::vector<int64_t>& table : tables) {
    const at::Tensor counts = at::tensor(table, at::kLong).view({4, 3});
    const int64_t X = counts.sum().item<int64_t>(), part = ffn / 2;
    const at::Tensor rows = Random({X, kHidden}), weights = Random({X}), dout = Random({X, kHidden});
    const Tensors whole = {Random({3, ffn, kHidden}), Random({3, kHidden, ffn})};
    const Tensors expected = Op().Run(ops::RunExperts, {rows, weights, counts}, whole);
    const Tensors expected_gradients = FilledGradients(whole);
    const Tensors expected_rows =
        Op().Run(ops::RunExpertsGrad, {dout, rows, weights, expected[1], counts}, whole, expected_gradients);
    at::Tensor out = at::zeros_like(rows), drows = at::zeros_like(rows), dweights = at::zeros_like(weights);
    for (int64_t i = 0; i < 2; ++i) {
      const auto cut = [&](const Tensors& of) {
        return Tensors{of[0].narrow(1, i * part, part).contiguous(), of[1].narrow(2, i * part, part).contiguous()};
      };
      const Tensors mine = cut(whole), gradients = FilledGradients(mine);
      const at::Tensor flat = i == 0 ? counts : counts.flatten();  // as they come with ep 1
      const Tensors made = Op().Run(ops::RunExperts, {rows, weights, flat}, mine);
      const Tensors grads = Op().Run(ops::RunExpertsGrad, {dout, rows, weights, made[1], flat}, mine, gradients);
      out += made[0], drows += grads[0], dweights += grads[1];
      EXPECT_SAME(made[1], expected[1].narrow(1, i * part, part));
      for (size_t k = 0; k < 2; ++k) EXPECT_SAME(gradients[k], cut(expected_gradients)[k]);
    }
    EXPECT_SAME(out, expected[0]);
    EXPECT_SAME(drows, expected_rows[0]);
    EXPECT_SAME(dweights, expected_rows[1]);
  }
}

// Two lanes of two tp ranks get the same fingerprint as one rank with the whole microbatch.
TEST(RoutingFingerprint, DoesNotDependOnTheLayout) {
  const at::Tensor ids = at::arange(6 * 4 * 2, at::kLong).remainder(7).view({6, 4, 2});  // positions, samples, k
  const auto run = [](Op op, const at::Tensor& part) {
    return op.Run(ops::RunRoutingFingerprint, {part.reshape({-1, 2})})[0].item<int64_t>();
  };
  const Attributes attributes = {{"sequence", int64_t{6}}};
  const int64_t whole = run(Op(attributes).InLayer(3), ids);
  uint64_t sum = 0;
  for (int lane = 0; lane < 2; ++lane) {
    for (int rank = 0; rank < 2; ++rank) {
      const at::Tensor part = ids.narrow(0, 3 * rank, 3).narrow(1, 2 * lane, 2);
      sum += static_cast<uint64_t>(run(Op(attributes).InLayer(3).OnTpRank(rank, 2).OnLane(lane, 2), part));
    }
  }
  EXPECT_EQ(static_cast<int64_t>(sum), whole);
  EXPECT_NE(run(Op(attributes).InLayer(4), ids), whole);
  EXPECT_NE(run(Op(attributes).InLayer(3).AtStep(1), ids), whole);
  EXPECT_NE(run(Op(attributes).InLayer(3), ids.flip(0)), whole);  // the same experts at other positions
  EXPECT_NE(run(Op(attributes).InLayer(3), ids.flip(1)), whole);
  EXPECT_EQ(run(Op(attributes).InLayer(3), ids.flip(2)), whole);  // the order of a token's experts does not matter
}

// A rank of cp 2 and tp 2 has, of its zigzag part, the half of its tp coordinate.
TEST(RoutingFingerprint, CountsPositionsOfTheWholeSequence) {
  const at::Tensor ids = at::arange(8 * 2 * 2, at::kLong).remainder(7).view({8, 2, 2});  // positions, samples, k
  const Attributes whole = {{"sequence", int64_t{8}}};
  Attributes part = whole;
  part.insert({{"cp", int64_t{2}}, {"zigzag", int64_t{1}}});
  const std::vector<int64_t> chunks[2] = {{0, 3}, {1, 2}};
  uint64_t sum = 0;
  for (int cp = 0; cp < 2; ++cp) {
    for (int tp = 0; tp < 2; ++tp) {
      const at::Tensor own = ids.narrow(0, 2 * chunks[cp][static_cast<size_t>(tp)], 2).reshape({-1, 2});
      sum += static_cast<uint64_t>(
          Op(part).OnCpRank(cp, 2).OnTpRank(tp, 2).Run(ops::RunRoutingFingerprint, {own})[0].item<int64_t>());
    }
  }
  EXPECT_EQ(static_cast<int64_t>(sum),
            Op(whole).Run(ops::RunRoutingFingerprint, {ids.reshape({-1, 2})})[0].item<int64_t>());
}

}  // namespace
}  // namespace planwright::executor
