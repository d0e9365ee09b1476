// Products of runs of rows on Hopper's tensor cores, beside the same products in fp64.
#include "executor/kernels/run_products.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <numeric>

#include "executor/ops/fast/cuda_operands.h"
#include "executor/ops/fast/grouped_product.h"
#include "tests/executor/kernels/check_kernel.h"
#include "tests/executor/kernels/runs_in_parts.h"

namespace planwright::executor {
namespace {

at::TensorOptions NarrowOnGpu() { return at::TensorOptions(at::kCUDA).dtype(at::kBFloat16); }

class RunProductsTask {
 public:
  // `behind` rows of NaN come after the last run. lengths: of each run, or [parts, runs].
  RunProductsTask(std::vector<int64_t> lengths, int64_t inner, int64_t width, int64_t behind = 37, int64_t parts = 1)
      : lengths_(std::move(lengths)), parts_(parts),
        used_(std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0})) {
    x_ = Random({used_ + behind, inner}).to(at::kBFloat16);
    x_.narrow(0, used_, behind).fill_(NAN);
    matrices_ = Random({static_cast<int64_t>(lengths_.size()) / parts, inner, width}).to(at::kBFloat16);
    on_gpu_x_ = x_.to(at::kCUDA);
    by_rows_ = matrices_.to(at::kCUDA);
    by_columns_ = matrices_.transpose(1, 2).contiguous().to(at::kCUDA);
    ends_ = at::tensor(lengths_, at::kLong).cumsum(0).to(at::kCUDA, at::kInt);
  }

  // Rows behind the last run keep what was there.
  at::Tensor Out() const { return at::full({x_.size(0), matrices_.size(2)}, 0.5, NarrowOnGpu()); }

  ops::RunProducts To(const at::Tensor& out, bool transposed) const {
    return {.out = ops::Elements<__nv_bfloat16>(out),
            .x = ops::Elements<__nv_bfloat16>(on_gpu_x_),
            .matrices = ops::Elements<__nv_bfloat16>(transposed ? by_columns_ : by_rows_),
            .transposed = transposed,
            .ends = ops::Elements<int>(ends_),
            .parts = parts_,
            .runs = by_rows_.size(0),
            .rows = x_.size(0),
            .inner = by_rows_.size(1),
            .width = by_rows_.size(2)};
  }

  void Expect(const at::Tensor& out) const {
    const at::Tensor wide = out.cpu().to(at::kDouble);
    int64_t first = 0;
    for (size_t e = 0; e < lengths_.size(); ++e) {
      const int64_t length = lengths_[e];
      if (length == 0) continue;
      const at::Tensor matrix = matrices_[static_cast<int64_t>(e) % matrices_.size(0)].to(at::kDouble),
                       exact = x_.narrow(0, first, length).to(at::kDouble).mm(matrix),
                       rows = wide.narrow(0, first, length);
      first += length;
      // Sums are rounded to bf16 once: each is off by at most 2^-8, and by half of that on average.
      const double gap = NormGap(rows, exact), largest = Gap(rows, exact);
      EXPECT_TRUE(gap <= (rows.numel() < 1000 ? 0.004 : 0.0025)) << "run " << e << " of " << length << " rows: " << gap;
      EXPECT_TRUE(largest <= 0.004) << "run " << e << " of " << length << " rows: " << largest;  // none is lost
    }
    EXPECT_TRUE((wide.narrow(0, used_, wide.size(0) - used_) == 0.5).all().item<bool>()) << "rows behind the last run";
  }

  // Both ways to store matrices, and each twice.
  void Check() const {
    for (const bool transposed : {false, true}) {
      SCOPED_TRACE(transposed ? "transposed" : "by rows");
      const at::Tensor out = Out(), again = Out();
      ASSERT_TRUE(ops::HopperTakes(To(out, transposed)));
      for (const at::Tensor& to : {out, again}) {
        C10_CUDA_CHECK(ops::LaunchProductsOfRuns(To(to, transposed), ops::CurrentStream()));
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      }
      Expect(out);
      EXPECT_TRUE(again.equal(out)) << "other bits the second time";
    }
  }

  // As the handlers call it.
  void CheckGroupedProduct() const {
    for (const at::Tensor& matrices : {by_rows_, by_columns_.transpose(1, 2)}) {
      const at::Tensor used = on_gpu_x_.narrow(0, 0, used_);
      EXPECT_TRUE(ops::MultipliesOnHopper(used, matrices, parts_));
      Expect(ops::GroupedProduct(used, matrices, ends_.view({parts_, matrices.size(0)})));
    }
  }

 private:
  const std::vector<int64_t> lengths_;
  const int64_t parts_, used_;  // used: rows of all runs
  at::Tensor x_, matrices_, on_gpu_x_, by_rows_, by_columns_, ends_;
};

class RunProducts : public Kernels {
 protected:
  void SetUp() override {
    Kernels::SetUp();
    if (IsSkipped()) return;
    const cudaDeviceProp& device = *at::cuda::getCurrentDeviceProperties();
    if (device.major != 9 || device.minor != 0) GTEST_SKIP() << "no Hopper GPU";
  }
};

// Lengths around the 64 rows of half a tile and the 128 of a whole one.
const std::vector<int64_t> kRowsOfRuns = {0, 1, 63, 64, 65, 127, 0, 128, 129, 16, 300, 191, 192, 193, 0};

// Every element identifies its row and column: a wrong index shows as a wrong number, not only as noise.
TEST_F(RunProducts, NameTheirIndices) {
  const int64_t rows = 200, inner = 64, width = 392;
  // Row i of x picks row i % 64 of the matrix, whose row k counts columns from k on.
  const at::Tensor x = at::zeros({rows, inner}, NarrowOnGpu());
  for (int64_t i = 0; i < rows; ++i) x[i][i % inner].fill_(1);
  const at::Tensor counted = at::arange(width, at::kLong).unsqueeze(0) + at::arange(inner, at::kLong).unsqueeze(1),
                   matrix = counted.remainder(256).to(NarrowOnGpu()),  // bf16 has all integers up to 256
      matrices = at::stack({matrix, matrix.mul(-1)}), columns = matrices.transpose(1, 2).contiguous(),
                   ends = at::tensor({70, 200}, at::TensorOptions(at::kInt)).to(at::kCUDA);
  for (const bool transposed : {false, true}) {
    const at::Tensor out = at::full({rows, width}, 0.5, NarrowOnGpu());
    C10_CUDA_CHECK(ops::LaunchProductsOfRuns({.out = ops::Elements<__nv_bfloat16>(out),
                                              .x = ops::Elements<__nv_bfloat16>(x),
                                              .matrices = ops::Elements<__nv_bfloat16>(transposed ? columns : matrices),
                                              .transposed = transposed,
                                              .ends = ops::Elements<int>(ends),
                                              .runs = 2,
                                              .rows = rows,
                                              .inner = inner,
                                              .width = width},
                                             ops::CurrentStream()));
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    const at::Tensor exact = matrix.index_select(0, at::arange(rows, at::TensorOptions(at::kCUDA)).remainder(inner));
    exact.narrow(0, 70, rows - 70).mul_(-1);
    EXPECT_TRUE(out.equal(exact)) << "transposed " << transposed
                                  << "\nrows with errors: " << (out != exact).any(1).nonzero().view(-1)
                                  << "\ncolumns with errors: " << (out != exact).any(0).nonzero().view(-1);
  }
}

TEST_F(RunProducts, OfWidthsThatFillNoTile) {
  RunProductsTask(kRowsOfRuns, 64, 8).Check();
  RunProductsTask(kRowsOfRuns, 128, 384).Check();
  RunProductsTask(kRowsOfRuns, 320, 200).Check();
  RunProductsTask(kRowsOfRuns, 192, 584).Check();
}

// More tiles than there are multiprocessors, so that each takes several.
TEST_F(RunProducts, OfRealWidths) {
  RunProductsTask({300, 130, 1, 64, 0, 777, 200, 500}, 2688, 1856).Check();
  RunProductsTask({65, 0, 190, 16, 100, 1200}, 1856, 2688).Check();
}

TEST_F(RunProducts, OfManyRuns) {
  std::vector<int64_t> lengths;
  for (int64_t e = 0; e < 200; ++e) lengths.push_back(e * 37 % 190);
  RunProductsTask(lengths, 128, 392).Check();
  lengths.assign(1024, 3);
  RunProductsTask(lengths, 64, 16).Check();
  RunProductsTask({1000}, 128, 392).Check();
}

TEST_F(RunProducts, OfRunsInParts) {
  const auto check = [](const RunsInParts& runs, int64_t inner, int64_t width) {
    RunProductsTask(runs.lengths, inner, width, runs.behind, runs.parts).Check();
  };
  for (const RunsInParts& runs : FewRunsInParts()) check(runs, 192, 200);
  check(ManyRunsInParts(16, 64, /*most=*/23), 64, 584);
  check(ManyRunsInParts(4, 16, /*most=*/190), 2688, 1856);
}

// Nothing behind the last row either: loads must not need it.
TEST_F(RunProducts, UpToTheLastRow) { RunProductsTask({70, 30, 33}, 128, 200, /*behind=*/0).Check(); }

TEST_F(RunProducts, OfNoRowsWriteNothing) { RunProductsTask({0, 0, 0}, 128, 200).Check(); }

TEST_F(RunProducts, OfHandlers) {
  RunProductsTask({70, 0, 130}, 192, 56, /*behind=*/0).CheckGroupedProduct();
  RunProductsTask({70, 0, 130, 4, 50, 9}, 192, 56, /*behind=*/0, /*parts=*/2).CheckGroupedProduct();
}

TEST_F(RunProducts, AskForSizesAndAlignment) {
  const RunProductsTask good({70, 30}, 128, 200);
  const at::Tensor out = good.Out();
  const ops::RunProducts task = good.To(out, false);
  EXPECT_TRUE(ops::HopperTakes(task));
  const auto with = [&](auto change) {
    ops::RunProducts changed = task;
    change(changed);
    return changed;
  };
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.x += 4; })));  // on 8 bytes only
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.out += 4; })));
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.matrices += 4; })));
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.inner = 72; })));
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.width = 196; })));
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.rows = 0; })));
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.runs = 1025; })));
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.parts = 513; })));
  EXPECT_FALSE(ops::HopperTakes(with([](auto& t) { t.parts = 0; })));
}

}  // namespace
}  // namespace planwright::executor
