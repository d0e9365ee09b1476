// Timing of the router, of the rows' way to the experts and back, and of the experts: 64 experts on one GPU.
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include "tests/executor/ops/run_op.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

constexpr int64_t kTokens = 8192, kHidden = 2688, kExperts = 64, kTopK = 6, kFfn = 1856, kRows = kTokens * kTopK;
// Bytes of tokens and of expert rows, and floating-point operations of one product of all rows.
constexpr double kTokenBytes = 2.0 * kTokens * kHidden, kRowBytes = 2.0 * kRows * kHidden,
                 kScoreBytes = 4.0 * kTokens * kExperts, kProductFlops = 2.0 * kRows * kHidden * kFfn;

const Attributes kRoute = {{"top_k", kTopK}, {"scale", 2.5}, {"sequence", kTokens}, {"aux_scale", 1.0}};
const Attributes kMoves = {{"top_k", kTopK}, {"sequence", kTokens}, {"samples", int64_t{1}}};

at::TensorOptions Gpu(at::ScalarType type) { return at::TensorOptions(at::kCUDA).dtype(type); }

// The largest expert has about twice as many tokens as the mean. Large and small ones are mixed.
at::Tensor SkewedIds() {
  const at::Tensor skew = at::arange(kExperts, Gpu(at::kFloat)).mul(29).remainder(kExperts).div(kExperts - 1).sub(0.5);
  return std::get<1>(at::randn({kTokens, kExperts}, Gpu(at::kFloat)).add(skew).topk(kTopK)).contiguous();
}

// Rows of half of the experts from four ranks; none is a multiple of anything.
at::Tensor CountsOfFour() {
  at::Tensor counts = at::full({4, kExperts / 2}, kRows / kExperts / 2, at::kLong);
  for (int64_t i = 0; i + 1 < counts.numel(); i += 2) {
    const int64_t more = i * 37 % 97;
    counts.view({-1})[i].add_(more), counts.view({-1})[i + 1].sub_(more);
  }
  return counts;
}

KernelCase Case(const char* name, double bytes, double flops, Handler handler, const Attributes& attributes,
                const Tensors& inputs, const Tensors& parameters = {}, const Tensors& gradients = {}) {
  return CaseOf(name, bytes, flops, {handler, attributes, inputs, parameters, gradients});
}

void AddRoutingCases(std::vector<KernelCase>& cases) {
  const at::Tensor n = at::randn({kTokens, 1, kHidden}, Gpu(at::kBFloat16)),
                   gate = at::randn({kExperts, kHidden}, Gpu(at::kBFloat16)).mul_(0.02),
                   bias = at::zeros({kExperts}, Gpu(at::kFloat)),
                   dgate = at::zeros({kExperts, kHidden}, Gpu(at::kFloat)),
                   dweights = at::randn({kTokens, kTopK}, Gpu(at::kFloat));
  const Tensors out = Op(kRoute).Run(ops::RunRoute, {n}, {gate, bias});
  const double flops = 2.0 * kTokens * kHidden * kExperts;
  cases.push_back(Case("route", kTokenBytes + 2 * kScoreBytes, flops, ops::RunRoute, kRoute, {n}, {gate, bias}));
  cases.push_back(Case("route_grad", 2 * kTokenBytes + kScoreBytes, 2 * flops, ops::RunRouteGrad, kRoute,
                       {dweights, n, out[0], out[1], out[5], out[4]}, {gate}, {dgate}));
  cases.push_back(Case("sequence_aux_loss", kScoreBytes, 0, ops::RunSequenceAuxLoss, kRoute, {out[3], out[4]}));
  cases.push_back(Case("routing_fingerprint", 8.0 * kRows, 0, ops::RunRoutingFingerprint, kRoute, {out[1]}));
}

void AddMoveCases(std::vector<KernelCase>& cases, const at::Tensor& ids) {
  const at::Tensor n = at::randn({kTokens, 1, kHidden}, Gpu(at::kBFloat16)),
                   rows = at::randn({kRows, kHidden}, Gpu(at::kBFloat16)),
                   weights = at::randn({kTokens, kTopK}, Gpu(at::kFloat)),
                   row_weights = at::randn({kRows}, Gpu(at::kFloat));
  const at::Tensor order = Op().Run(ops::RunPermuteRows, {n, weights, ids})[2];
  const double bytes = kTokenBytes + kRowBytes;
  cases.push_back(Case("permute_rows", bytes, 0, ops::RunPermuteRows, {}, {n, weights, ids}));
  cases.push_back(Case("permute_rows_grad", bytes, 0, ops::RunPermuteRowsGrad, kMoves, {rows, row_weights, order}));
  cases.push_back(Case("unpermute_rows", bytes, 0, ops::RunUnpermuteRows, kMoves, {rows, order}));
  cases.push_back(Case("unpermute_rows_grad", bytes, 0, ops::RunUnpermuteRowsGrad, kMoves, {n, order}));
}

// Gathered tokens on one of two ranks, whose tokens these are together. Sums are fp32.
void AddSelectCases(std::vector<KernelCase>& cases, const at::Tensor& ids) {
  const at::Tensor n = at::randn({kTokens, 1, kHidden}, Gpu(at::kBFloat16)),
                   weights = at::randn({kTokens, kTopK}, Gpu(at::kFloat));
  at::Tensor counts = at::zeros({2, kExperts / 2}, at::kLong);
  for (int64_t source : {0, 1}) {
    counts[source] = at::bincount(ids.narrow(0, source * kTokens / 2, kTokens / 2).reshape({-1}), {}, kExperts)
                         .narrow(0, 0, kExperts / 2)
                         .cpu();
  }
  const Tensors here = Op().OnEpRank(0, 2).Run(ops::RunSelectRows, {n, weights, ids, counts});
  const at::Tensor &rows = here[0], &row_weights = here[1], &order = here[2];
  const double row_bytes = 2.0 * static_cast<double>(rows.numel()), bytes = kTokenBytes + row_bytes;
  cases.push_back({.name = "select_rows", .bytes = bytes, .flops = 0, .run = [=] {
                     Op().OnEpRank(0, 2).Run(ops::RunSelectRows, {n, weights, ids, counts});
                   }});
  cases.push_back(
      Case("select_rows_grad", bytes + kTokenBytes, 0, ops::RunSelectRowsGrad, kMoves, {rows, row_weights, order}));
  cases.push_back(Case("combine_rows", bytes + kTokenBytes, 0, ops::RunCombineRows, kMoves, {rows, order}));
  cases.push_back(Case("combine_rows_grad", bytes, 0, ops::RunCombineRowsGrad, kMoves, {n, order}));
}

void AddExpertCases(std::vector<KernelCase>& cases, const at::Tensor& ids) {
  const at::Tensor rows = at::randn({kRows, kHidden}, Gpu(at::kBFloat16)),
                   dout = at::randn({kRows, kHidden}, Gpu(at::kBFloat16)),
                   weights = at::randn({kRows}, Gpu(at::kFloat)), counts = at::bincount(ids.view({-1}), {}, kExperts);
  const Tensors matrices = {at::randn({kExperts, kFfn, kHidden}, Gpu(at::kBFloat16)).mul_(0.02),
                            at::randn({kExperts, kHidden, kFfn}, Gpu(at::kBFloat16)).mul_(0.02)},
                gradients = {at::zeros({kExperts, kFfn, kHidden}, Gpu(at::kFloat)),
                             at::zeros({kExperts, kHidden, kFfn}, Gpu(at::kFloat))};
  const double matrix_bytes = 2.0 * kExperts * kFfn * kHidden, pre_bytes = 2.0 * kRows * kFfn;
  const at::Tensor pre = Op().Run(ops::RunExperts, {rows, weights, counts}, matrices)[1];
  const double forward = 2 * kRowBytes + pre_bytes + 2 * matrix_bytes,
               frozen = 3 * kRowBytes + pre_bytes + 2 * matrix_bytes;
  cases.push_back(Case("experts", forward, 2 * kProductFlops, ops::RunExperts, {}, {rows, weights, counts}, matrices));
  const Tensors backward = {dout, rows, weights, pre, counts};
  // A gradient is fp32, read and written.
  cases.push_back(Case("experts_grad", frozen + 2 * 4 * matrix_bytes, 4 * kProductFlops, ops::RunExpertsGrad, {},
                       backward, matrices, gradients));
  // The counts of several ranks are on the host.
  const at::Tensor of_four = CountsOfFour();
  const Tensors half = {matrices[0].narrow(0, 0, kExperts / 2), matrices[1].narrow(0, 0, kExperts / 2)},
                half_gradients = {gradients[0].narrow(0, 0, kExperts / 2), gradients[1].narrow(0, 0, kExperts / 2)};
  cases.push_back(
      {.name = "experts, of 4 sources", .bytes = forward - matrix_bytes, .flops = 2 * kProductFlops, .run = [=] {
         Op().Run(ops::RunExperts, {rows, weights, of_four}, half);
       }});
  cases.push_back({.name = "experts_grad, of 4 sources",
                   .bytes = frozen - matrix_bytes + 4 * matrix_bytes,
                   .flops = 4 * kProductFlops,
                   .run = [=] {
                     Op().Run(ops::RunExpertsGrad, {dout, rows, weights, pre, of_four}, half, half_gradients);
                   }});
  cases.push_back(
      Case("experts_grad of a frozen model", frozen, 2 * kProductFlops, ops::RunExpertsGrad, {}, backward, matrices));
}

}  // namespace

std::vector<KernelCase> ExpertCases() {
  std::vector<KernelCase> cases;
  const at::Tensor ids = SkewedIds();
  AddRoutingCases(cases);
  AddMoveCases(cases, ids);
  AddSelectCases(cases, ids);
  AddExpertCases(cases, ids);
  return cases;
}

}  // namespace planwright::executor
