// Times each operation of the fast path at the widths of the 20-layer model, 8192 positions of one sample, beside what
// the memory and the tensor cores allow, and beside the best time known before (kernels/kernel_case.h).
//
//   gpu_kernels [PART OF A NAME]
#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "executor/communication/backends.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

// What one H200 reaches: a copy in bytes read and written, and a large bf16 product that runs for seconds.
constexpr double kBytesPerSecond = 4.26e12, kFlopsPerSecond = 664e12;
constexpr int kWarmUp = 3, kBursts = 7;
constexpr double kBurstMs = 8;

// Milliseconds from the first launch of `runs` to the end of the last, on the device.
double Burst(const KernelCase& kernel, int runs) {
  at::cuda::CUDAEvent begin(cudaEventDefault), end(cudaEventDefault);
  begin.record();
  for (int i = 0; i < runs; ++i) kernel.run();
  end.record();
  end.synchronize();
  return begin.elapsed_time(end);
}

double MedianMs(const KernelCase& kernel) {
  for (int i = 0; i < kWarmUp; ++i) kernel.run();
  const int runs = std::clamp(static_cast<int>(kBurstMs / std::max(Burst(kernel, 1), 1e-3)), 1, 100);
  std::vector<double> times;
  for (int i = 0; i < kBursts; ++i) times.push_back(Burst(kernel, runs) / runs);
  std::nth_element(times.begin(), times.begin() + kBursts / 2, times.end());
  return times[kBursts / 2];
}

// The table of one file. Its tensors are freed before the next file makes its own.
void Time(const std::vector<KernelCase>& cases, const std::string& wanted) {
  for (const KernelCase& kernel : cases) {
    if (kernel.name.find(wanted) == std::string::npos) continue;
    const double ms = MedianMs(kernel),
                 floor = 1e3 * std::max(kernel.bytes / kBytesPerSecond, kernel.flops / kFlopsPerSecond);
    std::printf("%-34s %8.3f ms  floor %7.3f  ratio %5.2f", kernel.name.c_str(), ms, floor, ms / floor);
    if (kernel.known_ms > 0) std::printf("  known %7.3f  %s", kernel.known_ms, ms <= kernel.known_ms ? "ok" : "SLOWER");
    std::printf("\n");
    std::fflush(stdout);
  }
}

int Main(int argc, char** argv) {
  const std::string wanted = argc > 1 ? argv[1] : "";
  UseCudaDevice(0, false);
  at::manual_seed(7);
  Time(MixerRowCases(), wanted);
  Time(ScanCases(), wanted);
  Time(ExpertCases(), wanted);
  Time(OuterProductCases(), wanted);
  Time(DenseCases(), wanted);
  Time(LossAndStepCases(), wanted);
  return 0;
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) { return planwright::executor::Main(argc, argv); }
