// Checks the times that a profile takes from a GPU, with kernels that run for a known time; and measures what taking
// them costs, with many short kernels.
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "executor/communication/backends.h"
#include "executor/streams/streams.h"
#include "executor/telemetry/instruction_clock.h"
#include "executor/telemetry/recorder.h"

namespace planwright::executor {
namespace {

constexpr int64_t kCycles = 100'000'000;  // about a twentieth of a second
constexpr int64_t kMicrosecond = 1000;    // nanoseconds

bool Tell(bool good, const char* what) {
  std::printf("%s  %s\n", good ? "PASS" : "FAIL", what);
  return good;
}

double Milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

template <typename Work>
void Timed(InstructionClock& clock, size_t number, Work work) {
  clock.Begin(number);
  work();
  clock.End(number);
}

// Three instructions on one stream, against the host's clock. The third is launched while the device is idle.
bool IsRightOnOneStream() {
  const auto clock = MakeCudaInstructionClock(3);
  at::cuda::sleep(4 * kCycles);  // loads the kernel and brings the device to its clock rate
  c10::cuda::device_synchronize();
  const int64_t start = MonotonicNow();
  Timed(*clock, 0, [] { at::cuda::sleep(kCycles); });
  Timed(*clock, 1, [] { at::cuda::sleep(2 * kCycles); });
  const int64_t launched = MonotonicNow();
  c10::cuda::device_synchronize();
  const int64_t done = MonotonicNow();
  Timed(*clock, 2, [] { at::cuda::sleep(1); });
  const std::vector<InstructionSpan> spans = clock->Read();
  for (const InstructionSpan& span : spans) {
    std::printf("      from %.4f to %.4f ms\n", Milliseconds(span.begin - start), Milliseconds(span.end - start));
  }
  std::printf("      on the host: launched after %.4f ms, done after %.4f ms\n", Milliseconds(launched - start),
              Milliseconds(done - start));
  const int64_t first = spans[0].end - spans[0].begin, second = spans[1].end - spans[1].begin;
  bool good = Tell(launched - start < done - launched, "launching does not wait for the device");
  good &= Tell(std::abs(second - 2 * first) < first / 10, "twice the work takes twice the time");
  good &= Tell(std::abs(first + second - (done - start)) < 500 * kMicrosecond, "the host measures the same");
  good &=
      Tell(std::abs(spans[0].begin - start) < 500 * kMicrosecond && std::abs(spans[1].end - done) < 500 * kMicrosecond,
           "the clocks of device and host agree");
  good &= Tell(spans[1].begin >= spans[0].end && spans[1].begin - spans[0].end < 50 * kMicrosecond,
               "on a busy device one instruction follows the other at once");
  good &= Tell(spans[2].begin >= done - 50 * kMicrosecond, "an idle device begins when the host launches");
  return good;
}

// The second runs beside the first, the third waits for the first.
bool IsRightOnTwoStreams(Recorder& recorder) {
  const auto clock = MakeCudaInstructionClock(3);
  const std::unique_ptr<Streams> streams = MakeCudaStreams(2, recorder, {});
  const auto run = [&](size_t number, int stream, const std::vector<int64_t>& waits, int64_t cycles) {
    recorder.Begin(RecorderState::kRunning, 1, -1, -1, "step 1", number, "sleep");
    streams->Run({stream, waits, false}, [&] { Timed(*clock, number, [&] { at::cuda::sleep(cycles); }); });
  };
  run(0, 1, {-1, -1}, 4 * kCycles);
  run(1, 0, {-1, -1}, kCycles);
  run(2, 0, {-1, 0}, kCycles);
  streams->Join();
  const std::vector<InstructionSpan> spans = clock->Read();
  for (const InstructionSpan& span : spans) {
    std::printf("      two streams: from %.4f to %.4f ms\n", Milliseconds(span.begin - spans[0].begin),
                Milliseconds(span.end - spans[0].begin));
  }
  bool good = Tell(spans[1].end < spans[0].end, "two streams run at the same time");
  // Across streams the times are tied by one long distance, read as a float.
  good &= Tell(spans[2].begin >= spans[0].end - 2 * kMicrosecond && spans[2].begin - spans[0].end < 50 * kMicrosecond,
               "an instruction begins when what it waits for is done");
  return good;
}

bool IsCheap() {
  constexpr size_t kKernels = 20000;
  const at::Tensor value = at::empty({1024}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  int64_t times[2] = {INT64_MAX, INT64_MAX}, host = INT64_MAX;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (const bool timed : {false, true}) {
      const auto clock = MakeCudaInstructionClock(timed ? kKernels : 0);
      c10::cuda::device_synchronize();
      const int64_t start = MonotonicNow();
      for (size_t i = 0; i < kKernels; ++i) {
        timed ? Timed(*clock, i, [&] { value.fill_(1.0); }) : void(value.fill_(1.0));
      }
      c10::cuda::device_synchronize();
      times[timed] = std::min(times[timed], MonotonicNow() - start);
      clock->Read();
    }
    constexpr size_t kMarks = 200;  // few enough for the launch queue
    const auto clock = MakeCudaInstructionClock(kMarks);
    c10::cuda::device_synchronize();
    const int64_t start = MonotonicNow();
    for (size_t i = 0; i < kMarks; ++i) Timed(*clock, i, [] {});
    host = std::min<int64_t>(host, (MonotonicNow() - start) / kMarks);
    clock->Read();
  }
  const int64_t device = (times[1] - times[0]) / static_cast<int64_t>(kKernels);
  std::printf("      20000 small kernels: %.1f ms, timed one by one %.1f ms: %lld ns more for each\n",
              Milliseconds(times[0]), Milliseconds(times[1]), static_cast<long long>(device));
  std::printf("      the host spends %lld ns on each\n", static_cast<long long>(host));
  return Tell(device < 10 * kMicrosecond, "timing an instruction costs less than ten microseconds");
}

int Main() {
  UseCudaDevice(0, false);
  std::string folder = (std::filesystem::temp_directory_path() / "planwright_profile_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  auto recorder = Recorder::Open(folder, 0, "here");
  if (!recorder.ok()) return 2;
  bool good = IsRightOnOneStream();
  good &= IsRightOnTwoStreams(**recorder);
  good &= IsCheap();
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace planwright::executor

int main() { return planwright::executor::Main(); }
