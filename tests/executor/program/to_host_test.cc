// Small values on their way to the host: the bytes, and that they do not wait behind large copies.
#include "executor/program/to_host.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>
#ifdef PLANWRIGHT_CUDA
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/cuda/CUDAFunctions.h>

#include <vector>
#endif

namespace planwright::executor {
namespace {

TEST(ToHost, ATensorOfTheHostStays) {
  const at::Tensor counts = at::arange(5, at::kLong);
  EXPECT_EQ(ToHost(counts).const_data_ptr(), counts.const_data_ptr());
}

#ifdef PLANWRIGHT_CUDA

class ToHostOnGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (c10::cuda::device_count() == 0) GTEST_SKIP() << "needs a GPU";
  }
};

TEST_F(ToHostOnGpu, BringsAllBytesFromAnyOffset) {
  const at::Tensor all = at::arange(5000, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  for (at::ScalarType type : {at::kLong, at::kInt, at::kFloat, at::kByte}) {
    const at::Tensor typed = all.to(type);
    for (int64_t count : {0, 1, 7, 8, 255, 256, 257, 4000}) {
      for (int64_t first : {0, 1, 3, 8}) {
        const at::Tensor part = typed.narrow(0, first, count), host = ToHost(part);
        ASSERT_TRUE(host.is_cpu());
        EXPECT_TRUE(at::equal(host, part.cpu())) << type << " " << count << " from " << first;
      }
    }
  }
  const at::Tensor turned = all.view({50, 100}).t();
  EXPECT_TRUE(at::equal(ToHost(turned), turned.cpu())) << "not contiguous";
}

// The copies of a checkpoint: gigabytes, queued on another stream. The value is here before they are done.
TEST_F(ToHostOnGpu, DoesNotWaitBehindCopiesOfAnotherStream) {
  constexpr int64_t kBytes = int64_t{1} << 28;
  constexpr int kCopies = 16;
  const at::Device device(at::kCUDA, 0);
  const at::Tensor from = at::empty({kBytes}, at::TensorOptions(device).dtype(at::kByte)),
                   to = at::empty({kBytes}, at::TensorOptions(at::kCPU).dtype(at::kByte).pinned_memory(true)),
                   counts = at::arange(128, at::TensorOptions(device).dtype(at::kLong));
  ToHost(counts);  // loads the kernel
  const c10::impl::VirtualGuardImpl impl(device.type());
  const c10::Stream stream = impl.getStreamFromGlobalPool(device);
  c10::Event ready(device.type()), copied(device.type());
  ready.record(impl.getStream(device));
  ready.block(stream);
  {
    const c10::StreamGuard guard(stream);
    for (int i = 0; i < kCopies; ++i) at::Tensor(to).copy_(from, /*non_blocking=*/true);
    copied.record(stream);
  }
  const at::Tensor host = ToHost(counts);
  EXPECT_FALSE(copied.query()) << "the value waited for 4 GB";
  EXPECT_TRUE(at::equal(host, at::arange(128, at::kLong)));
  copied.synchronize();
}

#endif

}  // namespace
}  // namespace planwright::executor
