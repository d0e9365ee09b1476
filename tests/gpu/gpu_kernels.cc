// Times each operation of the fast path at the widths of the 20-layer model, and those of decoders at theirs, 8192
// positions of one sample, beside what the memory and the tensor cores allow, and beside the best time known before
// (kernels/kernel_case.h).
//
//   gpu_kernels [PART OF A NAME]
#include <ATen/Context.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAFunctions.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "executor/communication/backends.h"
#include "tests/gpu/kernels/kernel_case.h"

namespace planwright::executor {
namespace {

// What one H200 reaches: a copy in bytes read and written, and a large bf16 product that runs for seconds.
constexpr double kBytesPerSecond = 4.26e12, kFlopsPerSecond = 664e12;
constexpr int kWarmUp = 5, kRuns = 20;

// The median of runs that follow each other, as torch_layers.py takes it. They are few, and a pause comes before them:
// a card that has worked for long is limited by its power.
double MedianMs(const KernelCase& kernel) {
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  for (int i = 0; i < kWarmUp; ++i) kernel.run();
  std::vector<at::cuda::CUDAEvent> events;
  for (int i = 0; i <= kRuns; ++i) events.emplace_back(cudaEventDefault);
  events[0].record();
  for (int i = 1; i <= kRuns; ++i) {
    kernel.run();
    events[i].record();
  }
  events[kRuns].synchronize();
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) times.push_back(events[i].elapsed_time(events[i + 1]));
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

// The table of one file. Its tensors are freed before the next file makes its own.
void Time(const std::vector<KernelCase>& cases, const std::string& wanted) {
  for (const KernelCase& kernel : cases) {
    if (kernel.name.find(wanted) == std::string::npos) continue;
    const double ms = MedianMs(kernel),
                 floor = 1e3 * std::max(kernel.bytes / kBytesPerSecond, kernel.flops / kFlopsPerSecond);
    std::printf("%-34s %8.3f ms  floor %7.3f  ratio %5.2f", kernel.name.c_str(), ms, floor, ms / floor);
    if (kernel.known_ms > 0) std::printf("  known %7.3f, %+.0f %%", kernel.known_ms, 100 * (ms / kernel.known_ms - 1));
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
  Time(RunProductCases(), wanted);
  Time(OuterProductCases(), wanted);
  Time(DecoderCases(), wanted);
  Time(NormCases(), wanted);
  Time(ImageCases(), wanted);
  Time(JoinedSumCases(), wanted);
  Time(DenseCases(), wanted);
  Time(LossAndStepCases(), wanted);
  return 0;
}

}  // namespace
}  // namespace planwright::executor

int main(int argc, char** argv) { return planwright::executor::Main(argc, argv); }
