// The Mamba-2 scan by kernels, at the head width and state of the 20-layer model, beside the plain form in fp64.
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include "tests/executor/kernels/check_kernel.h"

namespace planwright::executor {
namespace {

struct Sizes {
  int64_t positions, samples, heads, groups, chunk, head_dim = 64, state = 128;
  int64_t inner() const { return heads * head_dim; }
  int64_t bc() const { return groups * state; }
  Attributes attributes() const {
    return {{"inner", inner()}, {"bc", bc()}, {"heads", heads}, {"groups", groups}, {"state", state}, {"chunk", chunk}};
  }
};

// x, B, C, u times decays, the states and their gradients are rounded to bf16 before they are multiplied, once each:
// 0.0017 for each factor of a term, and the outputs are rounded again: 0.0025 together, 0.0032 where many terms cancel.
// dA_log and ddt_bias are sums over all positions, of both signs. For one head they may nearly vanish, so every test
// has at least four.
constexpr Tolerances kByTensorCores = {.narrow = 0.004, .wide = 0.003, .gradients = 0.02};

// What only the plain form, which computes in fp32, can meet.
constexpr Tolerances kPlain = {.narrow = 0.0025, .wide = 1e-5, .gradients = 1e-4};

struct Scan {
  Sizes z;
  at::Tensor xbc, zxbcdt, dy, ends;
  Tensors parameters;  // A_log, D, dt_bias

  explicit Scan(Sizes sizes)
      : z(sizes), xbc(Random({z.positions, z.samples, z.inner() + 2 * z.bc()})),
        zxbcdt(Random({z.positions, z.samples, 2 * z.inner() + 2 * z.bc() + z.heads})),
        dy(Random({z.positions, z.samples, z.inner()})),
        parameters({Random({z.heads}), Random({z.heads}), Random({z.heads})}) {}
};

class ScanKernels : public Kernels {
 protected:
  // Forward, and backward from the exact states.
  static void Expect(const Scan& s, const Tolerances& tolerances = kByTensorCores,
                     const std::set<size_t>& wide_parameters = {}) {
    KernelCheck forward = {.attributes = s.z.attributes(),
                           .inputs = {s.xbc, s.zxbcdt},
                           .parameters = s.parameters,
                           .wide_parameters = wide_parameters,
                           .tolerances = tolerances};
    if (s.ends.defined()) forward.inputs.push_back(s.ends), forward.host_inputs = {2};
    const Tensors out = Check("scan", ops::RunMambaScan, forward);
    ASSERT_EQ(out.size(), 2);
    EXPECT_EQ(out[0].scalar_type(), at::kBFloat16);
    EXPECT_EQ(out[1].scalar_type(), at::kFloat);

    KernelCheck backward = forward;
    backward.inputs = {s.dy, s.xbc, s.zxbcdt, out[1].cpu().to(at::kDouble)};
    backward.wide_inputs = {3};
    backward.gradients_like = s.parameters;
    if (s.ends.defined()) backward.inputs.push_back(s.ends), backward.host_inputs = {4};
    const Tensors gradients = Check("scan grad", ops::RunMambaScanGrad, backward);
    ASSERT_EQ(gradients.size(), 2);
    EXPECT_EQ(gradients[0].scalar_type(), at::kBFloat16);
    EXPECT_EQ(gradients[1].scalar_type(), at::kBFloat16);
  }
};

TEST_F(ScanKernels, WholeChunks) {
  Expect(Scan({.positions = 256, .samples = 1, .heads = 8, .groups = 1, .chunk = 128}));
}

TEST_F(ScanKernels, LastChunkMayBeShort) {
  Expect(Scan({.positions = 301, .samples = 2, .heads = 4, .groups = 2, .chunk = 128}));
  Expect(Scan({.positions = 257, .samples = 1, .heads = 6, .groups = 3, .chunk = 128}));
}

TEST_F(ScanKernels, ChunksOf64) {
  Expect(Scan({.positions = 300, .samples = 2, .heads = 4, .groups = 2, .chunk = 64}));
}

TEST_F(ScanKernels, ManyChunks) {
  Expect(Scan({.positions = 1500, .samples = 1, .heads = 4, .groups = 1, .chunk = 128}));
  Expect(Scan({.positions = 1100, .samples = 2, .heads = 9, .groups = 1, .chunk = 64}));
}

// One chunk: the state at its start is zero, and a gap relative to zero says nothing. So only outputs are compared.
TEST_F(ScanKernels, SequenceShorterThanAChunk) {
  const Scan s({.positions = 50, .samples = 2, .heads = 4, .groups = 2, .chunk = 128});
  const auto on_gpu = [](const at::Tensor& x) { return x.to(at::kCUDA, at::kBFloat16); };
  const auto exact = [](const at::Tensor& x) { return x.to(at::kBFloat16).to(at::kDouble); };
  Tensors parameters, exact_parameters;
  for (const at::Tensor& x : s.parameters) parameters.push_back(on_gpu(x)), exact_parameters.push_back(exact(x));
  Op op(s.z.attributes());
  const Tensors out = op.Run(ops::RunMambaScan, {on_gpu(s.xbc), on_gpu(s.zxbcdt)}, parameters);
  const Tensors expected = op.Run(ops::RunMambaScan, {exact(s.xbc), exact(s.zxbcdt)}, exact_parameters);
  EXPECT_LE(NormGap(out[0], expected[0]), kByTensorCores.narrow);
  EXPECT_EQ(out[1].sizes(), expected[1].sizes());
  EXPECT_EQ(out[1].abs().max().item<float>(), 0);
  const Tensors gradients =
      op.Run(ops::RunMambaScanGrad, {on_gpu(s.dy), on_gpu(s.xbc), on_gpu(s.zxbcdt), out[1]}, parameters);
  const Tensors expected_gradients =
      op.Run(ops::RunMambaScanGrad, {exact(s.dy), exact(s.xbc), exact(s.zxbcdt), expected[1]}, exact_parameters);
  for (size_t i = 0; i < 2; ++i) EXPECT_LE(NormGap(gradients[i], expected_gradients[i]), kByTensorCores.narrow) << i;
}

// About -8 for each position in the exponent: without the mask exp(1000) would appear between the ends of a chunk.
TEST_F(ScanKernels, StrongDecayDoesNotOverflow) {
  Scan s({.positions = 300, .samples = 1, .heads = 4, .groups = 2, .chunk = 128});
  s.parameters[0].fill_(4);
  s.parameters[2].fill_(-2);
  Expect(s);
}

// Documents that end at the end of a chunk, inside one, several in one chunk, of one position, and longer than a chunk.
TEST_F(ScanKernels, DocumentsStartWithoutAState) {
  for (const std::vector<int64_t>& ends :
       {std::vector<int64_t>{333}, {128, 256, 333}, {5, 64, 70, 71, 300, 333}, {1, 2, 131, 332, 333}}) {
    for (const int64_t chunk : {64, 128}) {
      SCOPED_TRACE(::testing::PrintToString(ends));
      Scan s({.positions = 333, .samples = 1, .heads = 4, .groups = 2, .chunk = chunk});
      s.ends = at::tensor(ends, at::kLong);
      Expect(s);
    }
  }
}

// Sizes and dtypes that the kernels do not take.
TEST_F(ScanKernels, PlainFormServesTheRest) {
  Expect(Scan({.positions = 70, .samples = 2, .heads = 4, .groups = 2, .chunk = 32}), kPlain);
  Expect(Scan({.positions = 140, .samples = 1, .heads = 4, .groups = 2, .chunk = 128, .head_dim = 32}), kPlain);
  Expect(Scan({.positions = 140, .samples = 1, .heads = 4, .groups = 2, .chunk = 128, .head_dim = 64, .state = 64}),
         kPlain);
  Expect(Scan({.positions = 140, .samples = 1, .heads = 4, .groups = 2, .chunk = 128}), kPlain, {0, 1, 2});
}

struct OnGpu {
  at::Tensor xbc, zxbcdt, dy;
  Tensors parameters;
  explicit OnGpu(const Scan& s)
      : xbc(s.xbc.to(at::kCUDA, at::kBFloat16)), zxbcdt(s.zxbcdt.to(at::kCUDA, at::kBFloat16)),
        dy(s.dy.to(at::kCUDA, at::kBFloat16)) {
    for (const at::Tensor& x : s.parameters) parameters.push_back(x.to(at::kCUDA, at::kBFloat16));
  }
};

Tensors GradientBuffers(int64_t heads) {
  Tensors buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(at::full({heads}, 0.5, at::TensorOptions(at::kCUDA).dtype(at::kFloat)));
  return buffers;
}

TEST_F(ScanKernels, FrozenPartMakesTheSameBits) {
  const Scan s({.positions = 200, .samples = 2, .heads = 4, .groups = 2, .chunk = 128});
  const OnGpu gpu(s);
  Op op(s.z.attributes());
  const at::Tensor states = op.Run(ops::RunMambaScan, {gpu.xbc, gpu.zxbcdt}, gpu.parameters)[1];
  const Tensors inputs = {gpu.dy, gpu.xbc, gpu.zxbcdt, states};
  const Tensors learning = op.Run(ops::RunMambaScanGrad, inputs, gpu.parameters, GradientBuffers(4)),
                frozen = op.Run(ops::RunMambaScanGrad, inputs, gpu.parameters);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(frozen[i].equal(learning[i])) << i;
}

// Rows that do not begin at multiples of 16 bytes.
TEST_F(ScanKernels, MisalignedRowsFallBack) {
  const Scan s({.positions = 140, .samples = 1, .heads = 4, .groups = 2, .chunk = 128});
  const OnGpu gpu(s);
  const at::Tensor room = at::full({gpu.xbc.numel() + 1}, 0.0, gpu.xbc.options());
  const at::Tensor shifted = room.narrow(0, 1, gpu.xbc.numel()).view(gpu.xbc.sizes()).copy_(gpu.xbc);
  Op op(s.z.attributes());
  const Tensors aligned = op.Run(ops::RunMambaScan, {gpu.xbc, gpu.zxbcdt}, gpu.parameters),
                plain = op.Run(ops::RunMambaScan, {shifted, gpu.zxbcdt}, gpu.parameters);
  EXPECT_LE(NormGap(aligned[0], plain[0]), kByTensorCores.narrow);
  EXPECT_LE(NormGap(aligned[1], plain[1]), kByTensorCores.wide);
}

// With parameter_cp a rank has half of the heads, and the parameters of all.
TEST_F(ScanKernels, PartOfTheHeads) {
  const Scan s({.positions = 200, .samples = 1, .heads = 4, .groups = 2, .chunk = 128});
  const OnGpu gpu(s);
  const OnGpu all(Scan({.positions = 1, .samples = 1, .heads = 8, .groups = 2, .chunk = 128}));
  Tensors own;
  for (const at::Tensor& x : all.parameters) own.push_back(x.narrow(0, 4, 4));
  Attributes of_cp = s.z.attributes();
  of_cp["parameter_cp"] = int64_t{2};
  Op alone(s.z.attributes()), part(of_cp);
  part.OnCpRank(1, 2);
  const Tensors expected = alone.Run(ops::RunMambaScan, {gpu.xbc, gpu.zxbcdt}, own),
                out = part.Run(ops::RunMambaScan, {gpu.xbc, gpu.zxbcdt}, all.parameters);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(out[i].equal(expected[i])) << i;
  const Tensors gradients = GradientBuffers(8), expected_gradients = GradientBuffers(4);
  const Tensors inputs = {gpu.dy, gpu.xbc, gpu.zxbcdt, out[1]};
  alone.Run(ops::RunMambaScanGrad, inputs, own, expected_gradients);
  part.Run(ops::RunMambaScanGrad, inputs, all.parameters, gradients);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(gradients[i].narrow(0, 4, 4).equal(expected_gradients[i])) << i;
    EXPECT_EQ(gradients[i].narrow(0, 0, 4).sum().item<float>(), 2) << i;
  }
}

}  // namespace
}  // namespace planwright::executor
