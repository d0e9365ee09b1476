// Outer products of runs of rows on tensor cores, both forms, beside the same sums in fp64.
#include "executor/kernels/outer_products.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <numeric>

#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/expert_rows_on_gpu.h"
#include "tests/executor/kernels/check_kernel.h"
#include "tests/executor/kernels/runs_in_parts.h"

namespace planwright::executor {
namespace {

struct Form {
  const char* name;
  bool (*takes)(const ops::OuterProducts&);
  cudaError_t (*launch)(const ops::OuterProducts&, cudaStream_t);
};
constexpr Form kForms[] = {{"Hopper", ops::HopperTakes, ops::LaunchAddOuterProductsOfRuns},
                           {"simple", ops::SimpleFormTakes, ops::LaunchAddOuterProductsOfRunsSimple}};

// Rounded to bf16, so that the numbers of both sides are the same.
at::Tensor Rounded(at::IntArrayRef shape) { return Random(shape).to(at::kBFloat16); }

at::Tensor Sums(at::IntArrayRef shape) { return at::full(shape, 0.5, at::TensorOptions(at::kCUDA).dtype(at::kFloat)); }

class Task {
 public:
  // `behind` rows of NaN come after the last run. lengths: of each run, or [parts, runs].
  Task(std::vector<int64_t> lengths, int64_t inner, int64_t width, int64_t behind = 37, int64_t parts = 1)
      : lengths_(std::move(lengths)), parts_(parts), inner_(inner), width_(width) {
    const int64_t rows = std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0});
    a_ = Rounded({rows + behind, inner}), b_ = Rounded({rows + behind, width});
    if (behind > 0) a_.narrow(0, rows, behind).fill_(NAN), b_.narrow(0, rows, behind).fill_(NAN);
    on_gpu_a_ = a_.to(at::kCUDA), on_gpu_b_ = b_.to(at::kCUDA);
    ends_ = at::tensor(lengths_, at::kLong).cumsum(0).to(at::kCUDA, at::kInt);
  }

  int64_t runs() const { return static_cast<int64_t>(lengths_.size()) / parts_; }
  std::vector<int64_t> shape() const { return {runs(), inner_, width_}; }
  const at::Tensor& a() const { return on_gpu_a_; }
  const at::Tensor& b() const { return on_gpu_b_; }

  ops::OuterProducts WithSums(const at::Tensor& sums, bool writes = false) const {
    return {.sums = ops::Elements<float>(sums),
            .a = ops::Elements<__nv_bfloat16>(on_gpu_a_),
            .b = ops::Elements<__nv_bfloat16>(on_gpu_b_),
            .ends = ops::Elements<int>(ends_),
            .parts = parts_,
            .runs = runs(),
            .rows = on_gpu_a_.size(0),
            .inner = inner_,
            .width = width_,
            .writes = writes};
  }

  // What was added to sums of 0.5 is right for each run.
  void Expect(const at::Tensor& sums) const {
    const at::Tensor added = sums.cpu().to(at::kDouble) - 0.5, all = at::zeros(shape(), at::kDouble);
    std::vector<int64_t> lengths(static_cast<size_t>(runs()));
    int64_t first = 0;
    for (size_t i = 0; i < lengths_.size(); ++i) {
      const int64_t length = lengths_[i], e = static_cast<int64_t>(i) % runs();
      all[e].add_(a_.narrow(0, first, length).to(at::kDouble).t().mm(b_.narrow(0, first, length).to(at::kDouble)));
      first += length, lengths[static_cast<size_t>(e)] += length;
    }
    for (int64_t e = 0; e < runs(); ++e) {
      const int64_t length = lengths[static_cast<size_t>(e)];
      const at::Tensor exact = all[e];
      if (length == 0) {
        EXPECT_EQ(added[e].abs().max().item<double>(), 0) << "run " << e;
        continue;
      }
      // Products are exact. Sums in fp32 are off by a few roundings, one for each 16 rows.
      const double gap = NormGap(added[e], exact), largest = Gap(added[e], exact);
      EXPECT_TRUE(gap <= 1e-5) << "run " << e << " of " << length << " rows: " << gap;
      EXPECT_TRUE(largest <= 1e-5) << "run " << e << " of " << length << " rows: " << largest;  // no element is lost
    }
  }

  // Both forms, as far as this GPU has them, and each twice.
  void Check() const {
    for (const Form& form : kForms) {
      SCOPED_TRACE(form.name);
      const at::Tensor sums = Sums(shape()), again = Sums(shape());
      if (!form.takes(WithSums(sums))) {
        EXPECT_TRUE(!HopperGpu() || (parts_ > 1 && form.takes == ops::SimpleFormTakes)) << "not taken";
        continue;
      }
      for (const at::Tensor& to : {sums, again}) {
        C10_CUDA_CHECK(form.launch(WithSums(to), ops::CurrentStream()));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      }
      Expect(sums);
      EXPECT_TRUE(again.equal(sums)) << "other bits the second time";

      // What is written over what was there has the bits of what is added to 0.
      const at::Tensor left = at::full_like(sums, NAN), added = at::zeros_like(sums);
      if (!form.takes(WithSums(left, /*writes=*/true))) continue;
      C10_CUDA_CHECK(form.launch(WithSums(left, /*writes=*/true), ops::CurrentStream()));
      C10_CUDA_CHECK(form.launch(WithSums(added), ops::CurrentStream()));
      C10_CUDA_KERNEL_LAUNCH_CHECK();
      EXPECT_TRUE(left.equal(added)) << "rows with other sums: " << left.ne(added).any(2).nonzero();
    }
  }

  static bool HopperGpu() {
    const cudaDeviceProp& device = *at::cuda::getCurrentDeviceProperties();
    return device.major == 9 && device.minor == 0;
  }

 private:
  const std::vector<int64_t> lengths_;
  const int64_t parts_, inner_, width_;
  at::Tensor a_, b_, on_gpu_a_, on_gpu_b_, ends_;
};

// Lengths around the 16 rows of an instruction and the 64 (32) of a stage.
const std::vector<int64_t> kLengths = {0, 1, 63, 64, 65, 200, 0, 15, 16, 17, 31, 33, 128, 400, 0};

// One tile, which every element identifies: a wrong index shows as a wrong number, not only as noise.
TEST_F(Kernels, OuterProductsOfOneRowNameTheirIndices) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.name);
    const at::TensorOptions options = at::TensorOptions(at::kCUDA).dtype(at::kBFloat16);
    // Row k of a has 1 at column 5 k, row k of b counts columns from k on. Each sum is one of these numbers.
    const int64_t rows = 24, inner = 128, width = 384;
    const at::Tensor a = at::zeros({rows, inner}, options), sums = Sums({1, inner, width});
    for (int64_t k = 0; k < rows; ++k) a[k][5 * k].fill_(1);
    const at::Tensor counted = at::arange(width, at::kLong).unsqueeze(0) + at::arange(rows, at::kLong).unsqueeze(1);
    const at::Tensor b = counted.remainder(256).to(options);  // bf16 has all integers up to 256
    const at::Tensor ends = at::full({1}, rows, at::TensorOptions(at::kCUDA).dtype(at::kInt));
    const ops::OuterProducts task = {.sums = ops::Elements<float>(sums),
                                     .a = ops::Elements<__nv_bfloat16>(a),
                                     .b = ops::Elements<__nv_bfloat16>(b),
                                     .ends = ops::Elements<int>(ends),
                                     .runs = 1,
                                     .rows = rows,
                                     .inner = inner,
                                     .width = width};
    if (!form.takes(task)) continue;
    C10_CUDA_CHECK(form.launch(task, ops::CurrentStream()));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    const at::Tensor exact = a.cpu().to(at::kFloat).t().mm(b.cpu().to(at::kFloat)), added = sums.cpu()[0] - 0.5;
    EXPECT_TRUE(added.equal(exact)) << "rows with errors: " << (added != exact).any(1).nonzero().view(-1)
                                    << "\ncolumns with errors: " << (added != exact).any(0).nonzero().view(-1);
  }
}

TEST_F(Kernels, OuterProductsOfWidthsThatFillNoTile) {
  Task(kLengths, 8, 8).Check();
  Task(kLengths, 128, 384).Check();
  Task(kLengths, 136, 200).Check();
  Task(kLengths, 64, 584).Check();
  Task(kLengths, 200, 376).Check();
}

// More pieces than there are multiprocessors, so that each takes several.
TEST_F(Kernels, OuterProductsOfRealWidths) {
  Task({0, 130, 1, 64, 0, 77, 200}, 1856, 2688).Check();
  Task({65, 0, 190, 16, 100}, 2688, 1856).Check();
}

TEST_F(Kernels, OuterProductsOfManyRuns) {
  std::vector<int64_t> lengths;
  for (int64_t e = 0; e < 200; ++e) lengths.push_back(e * 37 % 90);
  Task(lengths, 264, 392).Check();
  Task({1000}, 264, 392).Check();
}

TEST_F(Kernels, OuterProductsOfRunsInParts) {
  const auto check = [](const RunsInParts& runs, int64_t inner, int64_t width) {
    Task(runs.lengths, inner, width, runs.behind, runs.parts).Check();
  };
  for (const RunsInParts& runs : FewRunsInParts()) check(runs, 200, 376);
  check(ManyRunsInParts(16, 64, /*most=*/23), 64, 200);
  check(ManyRunsInParts(4, 16, /*most=*/190), 1856, 2688);
}

// Nothing behind the last row either: loads must not need it.
TEST_F(Kernels, OuterProductsUpToTheLastRow) { Task({70, 30, 33}, 136, 200, /*behind=*/0).Check(); }

TEST_F(Kernels, OuterProductsOfNoRowsAddNothing) { Task({0, 0, 0}, 136, 200).Check(); }

TEST_F(Kernels, OuterProductsAskForAlignment) {
  const Task task(kLengths, 136, 200);
  // Gradients may begin anywhere in their buffer. The simple form takes them.
  const at::Tensor buffer = Sums({task.runs() * 136 * 200 + 1});
  const at::Tensor sums = buffer.narrow(0, 1, buffer.numel() - 1).view(task.shape());
  const ops::OuterProducts odd = task.WithSums(sums);
  EXPECT_FALSE(ops::HopperTakes(odd));
  EXPECT_TRUE(ops::SimpleFormTakes(odd));
  EXPECT_FALSE(ops::SimpleFormTakes(task.WithSums(sums, /*writes=*/true)));  // it only adds
  C10_CUDA_CHECK(ops::LaunchAddOuterProductsOfRunsSimple(odd, ops::CurrentStream()));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  task.Expect(sums);
  EXPECT_EQ(buffer[0].item<float>(), 0.5f);

  for (const Form& form : kForms) {
    ops::OuterProducts bad = task.WithSums(Sums(task.shape()));
    bad.a += 4;  // on 8 bytes only
    EXPECT_FALSE(form.takes(bad)) << form.name;
    bad.a -= 4, bad.inner = 132;
    EXPECT_FALSE(form.takes(bad)) << form.name;
  }
}

// The class that the handlers use: with counts on the device, on the host, and for widths and offsets of sums that only
// the plain form takes.
TEST_F(Kernels, OuterProductsOfExpertRows) {
  const std::vector<int64_t> lengths = {70, 0, 30};
  for (const int64_t width : {int64_t{48}, int64_t{37}}) {
    for (const int64_t offset : {int64_t{0}, int64_t{1}}) {
      const Task task(lengths, width, 56, /*behind=*/0);
      const at::Tensor counts = at::tensor(lengths, at::kLong), matrices = at::zeros({3, 8, width}, task.a().options());
      for (const at::Tensor& known : {counts, counts.to(at::kCUDA)}) {
        const at::Tensor buffer = Sums({3 * width * 56 + offset});
        const at::Tensor sums = buffer.narrow(0, offset, 3 * width * 56).view(task.shape());
        const ops::ExpertRowsOnGpu rows(known, matrices, task.a());
        rows.AddOuterProducts(sums, task.a(), task.b(), /*writes=*/false);
        task.Expect(sums);
        sums.fill_(NAN);
        rows.AddOuterProducts(sums, task.a(), task.b(), /*writes=*/true);
        task.Expect(sums + 0.5);
        if (offset > 0) {
          EXPECT_EQ(buffer[0].item<float>(), 0.5f);
        }
      }
    }
  }
}

}  // namespace
}  // namespace planwright::executor
