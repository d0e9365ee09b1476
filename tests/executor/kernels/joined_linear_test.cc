// A linear layer and the sum behind it as one product, and its backward with that of gelu: at the widths of real models
// and at others, with few rows and many, and where the two must take their own forms.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>

#include <array>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "executor/ops/fast/blas_product.h"
#include "tests/executor/kernels/check_kernel.h"
#include "tests/executor/ops/run_joined.h"

namespace planwright::executor {
namespace {

using Widths = std::array<int64_t, 2>;  // of x and of the sum

template <size_t place>
constexpr Handler kSum =
    &RunJoined<OpKind::kLinear, OpKind::kAdd, OfFirst{.inputs = 1, .parameters = 1, .place = place}>;
template <size_t place>
constexpr Handler kBiasedSum =
    &RunJoined<OpKind::kLinear, OpKind::kAddResidualBias, OfFirst{.inputs = 1, .parameters = 1, .place = place}>;
// The linear layer has a bias itself.
template <size_t place>
constexpr Handler kSumOfBiased =
    &RunJoined<OpKind::kLinear, OpKind::kAdd, OfFirst{.inputs = 1, .parameters = 2, .place = place}>;
constexpr Handler kBiasedSumOfBiased =
    &RunJoined<OpKind::kLinear, OpKind::kAddResidualBias, OfFirst{.inputs = 1, .parameters = 2}, /*joined=*/false>;

// Gelu in its tanh form, of a layer without and with a bias.
constexpr Handler kGelu = &RunJoined<OpKind::kLinear, OpKind::kGelu, OfFirst{.inputs = 1, .parameters = 1, .place = 0}>;
constexpr Handler kGeluOfBiased =
    &RunJoined<OpKind::kLinear, OpKind::kGelu, OfFirst{.inputs = 1, .parameters = 2, .place = 0}>;
constexpr Handler kExactGelu =
    &RunJoined<OpKind::kLinear, OpKind::kGelu, OfFirst{.inputs = 1, .parameters = 1, .place = 0}, /*joined=*/false>;
// Of gelu in its tanh form, and in its exact one.
constexpr Handler kGeluSlope =
    &RunJoined<OpKind::kLinearInputGrad, OpKind::kGeluGrad, OfFirst{.inputs = 1, .parameters = 1, .place = 0}>;
constexpr Handler kExactGeluSlope = &RunJoined<OpKind::kLinearInputGrad, OpKind::kGeluGrad,
                                               OfFirst{.inputs = 1, .parameters = 1, .place = 0}, /*joined=*/false>;

class JoinedLinear : public Kernels {
 protected:
  struct Operands {
    at::Tensor x, residual, weight, bias, another_bias;
  };

  // All terms of a sum are of size 1.
  static Operands Draw(std::vector<int64_t> rows, const Widths& widths) {
    const auto [in, out] = widths;
    const auto of_width = [&](int64_t width) {
      std::vector<int64_t> shape = rows;
      shape.push_back(width);
      return Random(shape);
    };
    return {of_width(in), of_width(out), Random({out, in}).div(std::sqrt(static_cast<double>(in))), Random({out}),
            Random({out})};
  }
  static Operands OnGpu(const Operands& all) {
    const auto moved = [](const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); };
    return {moved(all.x), moved(all.residual), moved(all.weight), moved(all.bias), moved(all.another_bias)};
  }

  static void CheckSums(const std::vector<int64_t>& rows, const Widths& widths) {
    SCOPED_TRACE(testing::Message() << at::IntArrayRef(rows) << " rows of " << widths[0] << " to " << widths[1]);
    const Operands all = Draw(rows, widths);
    const KernelCheck sum = {.inputs = {all.x, all.residual}, .parameters = {all.weight}},
                      biased = {.inputs = {all.x, all.residual}, .parameters = {all.weight, all.bias}};
    Check("sum", kSum<0>, sum);
    Check("sum, residual first", kSum<1>, sum);
    Check("biased sum", kBiasedSum<0>, biased);
    Check("biased sum, residual first", kBiasedSum<1>, biased);
    Check("sum of a biased layer", kSumOfBiased<0>, biased);
    Check("sum of a biased layer, residual first", kSumOfBiased<1>, biased);
  }

  // The same numbers, one element away from any alignment.
  static at::Tensor Shifted(const at::Tensor& x) {
    return at::cat({x.view({-1}).narrow(0, 0, 1), x.view({-1})}).narrow(0, 1, x.numel()).view(x.sizes());
  }
  // The same numbers, where rows do not lie one after the other.
  static at::Tensor Strided(const at::Tensor& x) { return at::cat({x, x}, -1).narrow(-1, 0, x.size(-1)); }
};

TEST_F(JoinedLinear, Gelu) {
  for (const Widths& widths : {Widths{1024, 4096}, Widths{24, 64}, Widths{1152, 4304}}) {
    for (const int64_t rows : {1, 7, 1000, 4099}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << widths[0] << " to " << widths[1]);
      const Operands all = Draw({rows}, widths);
      const KernelCheck check = {.inputs = {all.x}, .parameters = {all.weight}};
      EXPECT_EQ(Check("gelu", kGelu, check).size(), 2);  // what gelu is taken of stays
      KernelCheck biased = check;
      biased.parameters.push_back(all.bias);
      Check("gelu of a biased layer", kGeluOfBiased, biased);
      KernelCheck exact = check;
      exact.attributes = {{"erf", int64_t{1}}};
      exact.tolerances.narrow = 0.005;  // the product is rounded before gelu is taken
      Check("exact gelu", kExactGelu, exact);
    }
  }
}

// The widths are those of gelu's side and of dy.
TEST_F(JoinedLinear, BackwardWithGelu) {
  for (const Widths& widths : {Widths{4096, 1024}, Widths{64, 24}, Widths{4304, 1152}}) {
    for (const int64_t rows : {1, 7, 1000, 4099}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << widths[0] << " from " << widths[1]);
      const Operands all = Draw({rows}, widths);
      const KernelCheck check = {.inputs = {all.residual, all.x}, .parameters = {all.weight}};
      Check("slope of gelu", kGeluSlope, check);
      KernelCheck exact = check;
      exact.attributes = {{"erf", int64_t{1}}};
      exact.tolerances.narrow = 0.005;  // the product is rounded before it is multiplied
      Check("exact gelu", kExactGeluSlope, exact);
    }
  }
}

TEST_F(JoinedLinear, RealWidths) {
  for (const int64_t rows : {1, 7, 1000}) {
    CheckSums({rows, 1}, {2048, 2048});
    CheckSums({rows}, {4096, 1024});
    CheckSums({rows}, {1024, 1024});
  }
  CheckSums({67, 3}, {6144, 2048});
}

TEST_F(JoinedLinear, ManyRows) {
  CheckSums({4099}, {1024, 1024});
  CheckSums({16391}, {256, 128});
}

TEST_F(JoinedLinear, AnyWidth) {
  for (const int64_t rows : {1, 3, 129}) {
    for (const Widths& widths : std::vector<Widths>{{8, 8}, {24, 40}, {40, 8}, {8, 72}, {1032, 136}, {136, 1032}})
      CheckSums({rows, 2}, widths);
  }
}

// A product adds one bias. Each of the two has its own form then, and rounds by itself.
TEST_F(JoinedLinear, TwoBiases) {
  const Operands all = Draw({75, 2}, {512, 256});
  Check("two biases", kBiasedSumOfBiased,
        {.inputs = {all.x, all.residual},
         .parameters = {all.weight, all.bias, all.another_bias},
         .tolerances = {.narrow = 0.003}});
}

// What is rounded once is nearer to the exact sum than what is rounded in between, too.
TEST_F(JoinedLinear, IsNearerThanOneByOne) {
  for (const Widths& widths : std::vector<Widths>{{6144, 2048}, {2048, 2048}, {4096, 1024}, {1024, 1024}}) {
    SCOPED_TRACE(testing::Message() << widths[0] << " to " << widths[1]);
    const Operands all = OnGpu(Draw({64}, widths));
    const auto exact = [](const at::Tensor& x) { return x.cpu().to(at::kDouble); };
    const at::Tensor product = Op().Run(ops::RunLinear, {all.x}, {all.weight})[0];
    const Tensors inputs = {exact(all.x), exact(all.residual)};
    const auto compare = [&](Handler handler, const Tensors& parameters, const Tensors& exact_parameters,
                             const at::Tensor& apart) {
      const at::Tensor expected = Op().Run(handler, inputs, exact_parameters)[0],
                       joined = Op().Run(handler, {all.x, all.residual}, parameters)[0];
      EXPECT_LT(NormGap(joined, expected), NormGap(apart, expected));
    };
    compare(kSum<1>, {all.weight}, {exact(all.weight)}, Op().Run(ops::RunAdd, {all.residual, product})[0]);
    compare(kBiasedSum<1>, {all.weight, all.bias}, {exact(all.weight), exact(all.bias)},
            Op().Run(ops::RunAddResidualBias, {all.residual, product}, {all.bias})[0]);
  }
}

// The residual is only read, also by what comes later.
TEST_F(JoinedLinear, LeavesItsOperands) {
  const Operands all = OnGpu(Draw({130}, {512, 256}));
  const at::Tensor x = all.x.clone(), residual = all.residual.clone(), weight = all.weight.clone();
  const at::Tensor sum = Op().Run(kBiasedSum<1>, {all.x, all.residual}, {all.weight, all.bias})[0];
  EXPECT_FALSE(sum.is_alias_of(all.residual));
  EXPECT_TRUE(all.x.equal(x));
  EXPECT_TRUE(all.residual.equal(residual));
  EXPECT_TRUE(all.weight.equal(weight));
}

// What does not start at 16 bytes, or has gaps, goes through the forms of the two.
TEST_F(JoinedLinear, AnyAddress) {
  const Operands all = OnGpu(Draw({130, 2}, {512, 256}));
  const auto run = [](const Operands& of) {
    return std::array<at::Tensor, 5>{Op().Run(kSum<0>, {of.x, of.residual}, {of.weight})[0],
                                     Op().Run(kBiasedSum<1>, {of.x, of.residual}, {of.weight, of.bias})[0],
                                     Op().Run(kSumOfBiased<1>, {of.x, of.residual}, {of.weight, of.bias})[0],
                                     Op().Run(kGeluOfBiased, {of.x}, {of.weight, of.bias})[1],
                                     Op().Run(kGeluSlope, {of.residual, of.x}, {of.weight})[0]};
  };
  const auto usual = run(all);
  const auto compare = [&](const char* name, const Operands& of) {
    const auto other = run(of);
    for (size_t i = 0; i < usual.size(); ++i)
      EXPECT_LE(NormGap(other[i], usual[i]), 0.005) << name << ", " << i;  // each is rounded by itself
  };
  Operands of = all;
  of.x = Shifted(all.x);
  compare("x", of);
  of = all, of.residual = Shifted(all.residual);
  compare("residual", of);
  of = all, of.weight = Shifted(all.weight);
  compare("weight", of);
  of = all, of.bias = Shifted(all.bias);
  compare("bias", of);
  of = all, of.x = Strided(all.x), of.residual = Strided(all.residual);
  compare("strides", of);
}

// Parameters are views of a larger buffer: a start at a multiple of 16 bytes, and of nothing more, is enough.
TEST_F(JoinedLinear, LeastAlignment) {
  const Operands all = OnGpu(Draw({130}, {512, 256}));
  const auto later = [](const at::Tensor& x, int64_t elements) {
    const at::Tensor buffer = at::empty({x.numel() + elements}, x.options());
    return buffer.narrow(0, elements, x.numel()).view(x.sizes()).copy_(x);
  };
  const at::Tensor usual = ops::SummedProduct(all.x, all.weight, all.residual, all.bias);
  for (const int64_t elements : {8, 16, 24, 64}) {
    const at::Tensor moved = ops::SummedProduct(later(all.x, elements), later(all.weight, elements),
                                                later(all.residual, elements), later(all.bias, elements));
    EXPECT_LE(NormGap(moved, usual), 0.0025) << elements;
  }
}

TEST_F(JoinedLinear, NoRows) {
  Operands all = OnGpu(Draw({3, 2}, {64, 32}));
  const Tensors none = {all.x.narrow(0, 0, 0), all.residual.narrow(0, 0, 0)};
  EXPECT_EQ(Op().Run(kSum<0>, none, {all.weight})[0].sizes(), none[1].sizes());
  EXPECT_EQ(Op().Run(kBiasedSum<1>, none, {all.weight, all.bias})[0].sizes(), none[1].sizes());
  EXPECT_EQ(Op().Run(kGelu, {none[0]}, {all.weight})[1].sizes(), none[1].sizes());
  EXPECT_EQ(Op().Run(kGeluSlope, {none[1], none[0]}, {all.weight})[0].sizes(), none[0].sizes());
}

TEST_F(JoinedLinear, RefusesWhatDoesNotFit) {
  const Operands all = OnGpu(Draw({6}, {64, 32}));
  EXPECT_THROW(ops::SummedProduct(all.x, all.weight, all.residual.narrow(0, 0, 5), {}), c10::Error);
  EXPECT_THROW(ops::SummedProduct(all.residual, all.weight, all.residual, {}), c10::Error);
  EXPECT_THROW(ops::SummedProduct(all.x, all.weight, all.residual, all.bias.narrow(0, 0, 31)), c10::Error);
}

// More numbers of rows than choices of kernels are kept, asked for by two threads at once, each on a stream of its own.
TEST_F(JoinedLinear, ManyShapesFromSeveralThreads) {
  constexpr int64_t kMost = 400;
  const Operands all = OnGpu(Draw({kMost}, {256, 128}));
  const at::Tensor expected = ops::SummedProduct(all.x, all.weight, all.residual, all.bias).cpu();
  std::array<Tensors, 2> sums;
  at::cuda::getCurrentCUDAStream().synchronize();
  const auto work = [&all](Tensors& made, bool downwards) {
    const c10::cuda::CUDAStreamGuard stream(at::cuda::getStreamFromPool());
    for (int64_t i = 1; i <= kMost; ++i) {
      const int64_t rows = downwards ? kMost + 1 - i : i;
      made.push_back(
          ops::SummedProduct(all.x.narrow(0, 0, rows), all.weight, all.residual.narrow(0, 0, rows), all.bias));
    }
    at::cuda::getCurrentCUDAStream().synchronize();
  };
  std::thread other([&] { work(sums[1], true); });
  work(sums[0], false);
  other.join();
  for (const Tensors& made : sums) {
    ASSERT_EQ(made.size(), static_cast<size_t>(kMost));
    for (const at::Tensor& sum : made)
      EXPECT_LE(NormGap(sum, expected.narrow(0, 0, sum.size(0))), 0.0025) << sum.size(0) << " rows";
  }
}

// Whether the two are joined on a GPU. Types are texts of plan files.
bool AreJoined(OpKind second, const std::string& x, const std::vector<std::string>& terms,
               const std::vector<at::ScalarType>& biases_of_linear = {}, at::ScalarType dtype = at::kBFloat16) {
  Instruction linear, sum;
  linear.kind = OpKind::kLinear, sum.kind = second, sum.inputs = terms;  // how many there are
  const ValueType read = TypeFromText(x).value();
  std::vector<ValueType> added;
  for (const std::string& term : terms) added.push_back(TypeFromText(term).value());
  Tensors parameters = {at::empty({16, 64}, dtype)}, of_sum;
  for (const at::ScalarType bias : biases_of_linear) parameters.push_back(at::empty({16}, bias));
  if (second == OpKind::kAddResidualBias) of_sum.push_back(at::empty({16}, dtype));
  const at::Device gpu(at::kCUDA, 0);
  const ComputeBinding first = {linear, nullptr, gpu, {&read}, parameters, {}};
  ComputeBinding other = {sum, nullptr, gpu, {}, of_sum, {}};
  for (const ValueType& term : added) other.inputs.push_back(&term);
  return ChooseJoinedForm(first, other) != nullptr;
}

// The rest needs no GPU.
TEST(JoinedLinearForms, TakeBf16OfWidthsOfWholeVectors) {
  for (const OpKind kind : {OpKind::kAdd, OpKind::kAddResidualBias}) {
    const std::string x = "bf16[rows,64]", y = "bf16[rows,16]";
    EXPECT_TRUE(AreJoined(kind, x, {y, y}));
    EXPECT_TRUE(AreJoined(kind, "bf16[24,2,64]", {"bf16[24,2,16]", "bf16[24,2,16]"}));
    EXPECT_FALSE(AreJoined(kind, "fp32[rows,64]", {"fp32[rows,16]", "fp32[rows,16]"}, {}, at::kFloat));
    EXPECT_FALSE(AreJoined(kind, x, {y, y}, {}, at::kFloat));
    EXPECT_FALSE(AreJoined(kind, x, {y, "fp32[rows,16]"}));
    EXPECT_FALSE(AreJoined(kind, "bf16[rows,60]", {y, y}));
    EXPECT_FALSE(AreJoined(kind, x, {"bf16[rows,12]", "bf16[rows,12]"}));
    EXPECT_FALSE(AreJoined(kind, x, {y, "bf16[1,16]"}));  // a sum that repeats one of its terms
  }
}

TEST(JoinedLinearForms, TakeOneBias) {
  const std::string x = "bf16[rows,64]", y = "bf16[rows,16]";
  EXPECT_TRUE(AreJoined(OpKind::kAdd, x, {y, y}, {at::kBFloat16}));
  EXPECT_FALSE(AreJoined(OpKind::kAdd, x, {y, y}, {at::kFloat}));
  EXPECT_FALSE(AreJoined(OpKind::kAddResidualBias, x, {y, y}, {at::kBFloat16}));
}

TEST(JoinedLinearForms, AddTwo) {
  const std::string y = "bf16[rows,16]";
  EXPECT_FALSE(AreJoined(OpKind::kAdd, "bf16[rows,64]", {y, y, y}));
}

}  // namespace
}  // namespace planwright::executor
