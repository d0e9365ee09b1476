// Checks that the recorder is right about what a GPU has done, with kernels that run for a known time; and measures
// what that costs, with many short kernels.
#include <ATen/cuda/Sleep.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <stdlib.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "executor/communication/backends.h"
#include "executor/streams/streams.h"
#include "executor/telemetry/recorder.h"

namespace planwright::executor {
namespace {

using Clock = std::chrono::steady_clock;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

bool Tell(bool good, const char* what) {
  std::printf("%s  %s\n", good ? "PASS" : "FAIL", what);
  return good;
}

// While the second of three instructions runs, the first is done and the second is not. In the end all are done.
bool FollowsTheDevice(Recorder& recorder) {
  const at::Tensor value = at::empty({1024}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  value.fill_(1.0);
  c10::cuda::device_synchronize();
  const uint64_t before = recorder.begun();
  recorder.Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 0, "fill");
  value.fill_(2.0);
  recorder.Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 1, "sleep");
  const auto start = Clock::now();
  at::cuda::sleep(2'000'000'000);  // about a second
  recorder.Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 2, "fill");
  value.fill_(3.0);
  recorder.Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 3, "nothing");
  const double launch = Seconds(Clock::now() - start);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  recorder.Refresh();
  const uint64_t during = recorder.done() - before;
  c10::cuda::device_synchronize();
  const double end = Seconds(Clock::now() - start);
  recorder.Refresh();
  const uint64_t after = recorder.done() - before;
  std::printf("      launched in %.6f s, %llu done meanwhile, the kernel ended after %.2f s, then %llu done\n", launch,
              static_cast<unsigned long long>(during), end, static_cast<unsigned long long>(after));
  bool good = Tell(launch < 0.1 && end > 0.4, "launching does not wait for the device");
  good &= Tell(during == 1 && after == 3, "what is done is what the device has finished");
  return good;
}

// The host may be some dozens of instructions ahead. Then it waits, and says for how long: that is not what launching
// takes.
bool TellsItsWaits(Recorder& recorder) {
  constexpr int kInstructions = 128;
  const at::Tensor value = at::empty({1024}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  const auto launch = [&] {
    const auto begun = Clock::now();
    for (int i = 0; i < kInstructions; ++i) {
      recorder.Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 0, "work");
      value.fill_(i);
      recorder.Launched();
    }
    return Seconds(Clock::now() - begun);
  };
  c10::cuda::device_synchronize();
  at::cuda::sleep(2'000'000'000);  // about a second
  const std::chrono::nanoseconds before = recorder.waited();
  const double took = launch(), waited = Seconds(recorder.waited() - before);
  std::printf("      %d launches behind a long kernel took %.2f s, of which %.2f s waited for the device\n",
              kInstructions, took, waited);
  return Tell(waited > 0.4 && waited <= took && took - waited < 0.1,
              "what the host waits for a device that is far behind is told apart from launching");
}

// On two streams a later instruction may be done before an earlier one. Only instructions that are done without a gap
// count. The third waits for the first.
bool FollowsSeveralStreams(Recorder& recorder) {
  const at::Tensor value = at::empty({1024}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  value.fill_(0.0);
  c10::cuda::device_synchronize();
  const std::unique_ptr<Streams> streams = MakeCudaStreams(2, recorder, {});
  const auto run = [&](int stream, const std::vector<int64_t>& waits, const std::function<void()>& work) {
    recorder.Begin(RecorderState::kRunning, 1, -1, -1, "step 1", 0, "work");
    streams->Run({stream, waits, false}, work);
  };
  const uint64_t before = recorder.begun();
  run(1, {-1, -1}, [&] {
    at::cuda::sleep(2'000'000'000);
    value.fill_(1.0);
  });
  run(0, {-1, -1}, [&] { at::empty_like(value).fill_(2.0); });
  const c10::cuda::CUDAStream own = c10::cuda::getCurrentCUDAStream();
  own.synchronize();  // the second is done, the first is not
  recorder.Refresh();
  const uint64_t during = recorder.done() - before;
  double read = 0;
  run(0, {-1, 0}, [&] { read = value[0].item<double>(); });
  recorder.Refresh();
  const uint64_t after = recorder.done() - before;
  std::printf("      two streams: %llu done while the first runs, then %llu; the one that waits reads %g\n",
              static_cast<unsigned long long>(during), static_cast<unsigned long long>(after), read);
  bool good = Tell(during == 0 && after >= 2, "an instruction counts as done only after all before it");
  good &= Tell(read == 1, "an instruction waits for what it names on another stream");
  return good;
}

// The smallest of several means: the cost itself, without disturbances.
template <typename Work>
double Nanoseconds(Work work) {
  constexpr int kRepeats = 20, kCalls = 200;
  double best = 1e12;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    c10::cuda::device_synchronize();
    const auto start = Clock::now();
    for (int i = 0; i < kCalls; ++i) work(i);
    best = std::min(best, 1e9 * Seconds(Clock::now() - start) / kCalls);
    c10::cuda::device_synchronize();
  }
  return best;
}

bool IsCheap(Recorder& recorder) {
  const auto completion = MakeCudaCompletion();
  const at::Tensor value = at::empty({1024}, at::TensorOptions(at::kCUDA).dtype(at::kFloat));
  const std::string path = "step 12 > language.layers.3 language.mamba.forward",
                    text = "all_gather n -> n_full over language.tp";
  const double mark = Nanoseconds([&](int i) { completion->Mark(i); });
  const double begin = Nanoseconds([&](int i) { recorder.Begin(RecorderState::kRunning, 12, 0, 5, path, i, text); });
  const double kernel = Nanoseconds([&](int i) { value.fill_(i); });
  const double both = Nanoseconds([&](int i) { value.fill_(i), completion->Mark(i); });
  std::printf(
      "      host, in ns: mark %.0f, begin of an instruction with its mark %.0f; a kernel through LibTorch %.0f, with "
      "a mark %.0f\n",
      mark, begin, kernel, both);
  c10::cuda::device_synchronize();
  auto start = Clock::now();
  for (int i = 0; i < 20000; ++i) value.fill_(i);
  c10::cuda::device_synchronize();
  const double without = Seconds(Clock::now() - start);
  start = Clock::now();
  for (int i = 0; i < 20000; ++i) value.fill_(i), completion->Mark(i);
  c10::cuda::device_synchronize();
  const double with = Seconds(Clock::now() - start);
  std::printf("      20000 small kernels, until the device is done: %.1f ms, with a mark after each %.1f ms\n",
              1e3 * without, 1e3 * with);
  const double look = Nanoseconds([&](int) { completion->Finished(); });
  std::printf("      a look at how far the device is: %.0f ns\n", look);
  return Tell(mark < 1000, "a mark costs the host less than a microsecond");
}

int Main() {
  UseCudaDevice(0, false);
  std::string folder = (std::filesystem::temp_directory_path() / "planwright_completion_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 2;
  auto recorder = Recorder::Open(folder, 0, "here");
  if (!recorder.ok()) return 2;
  (*recorder)->Follow(MakeCudaCompletion());
  bool good = FollowsTheDevice(**recorder);
  good &= TellsItsWaits(**recorder);
  good &= FollowsSeveralStreams(**recorder);
  good &= IsCheap(**recorder);
  std::filesystem::remove_all(folder);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace planwright::executor

int main() { return planwright::executor::Main(); }
