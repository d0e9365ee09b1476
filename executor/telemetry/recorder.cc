#include "executor/telemetry/recorder.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

namespace planwright::executor {
namespace {

// Cuts a text that is too long.
template <size_t size>
void CopyText(char (&target)[size], const char* text, size_t length) {
  if (length >= size) length = size - 1;
  std::memcpy(target, text, length);
  target[length] = '\0';
}

int64_t Now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Open(const std::string& run_dir, int rank,
                                                         const std::string& host) {
  const std::string path = RecorderPath(run_dir, rank);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  // A new file: cutting off one that another process has mapped would end that process with SIGBUS.
  unlink(path.c_str());
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  // All blocks are allocated now. On a full disk a later write to the mapping would end the process with SIGBUS.
  const int problem = file < 0 ? errno : posix_fallocate(file, 0, sizeof(RecorderPage));
  if (problem != 0) {
    const std::string why = std::strerror(problem);
    if (file >= 0) close(file);
    return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": ", why));
  }
  void* memory = mmap(nullptr, sizeof(RecorderPage), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED)
    return absl::ResourceExhaustedError(absl::StrCat("cannot map ", path, ": ", std::strerror(errno)));
  auto* page = static_cast<RecorderPage*>(memory);
  page->rank = rank;
  page->pid = static_cast<int32_t>(getpid());
  CopyText(page->host, host.data(), host.size());
  // The magic comes last: a reader that finds it knows that the rest of the page is written.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(page->magic, kRecorderMagic, sizeof kRecorderMagic);
  return std::unique_ptr<Recorder>(new Recorder(page));
}

Recorder::~Recorder() { munmap(page_, sizeof(RecorderPage)); }

void Recorder::Begin(RecorderState state, int64_t step, int microbatch, int origin, const std::string& path,
                     size_t index, const std::string& instruction, std::chrono::nanoseconds deadline) {
  while (failed_.load(std::memory_order_relaxed)) pause();
  Launched();
  const uint64_t number = page_->begun.load(std::memory_order_relaxed) + 1;
  RecorderEntry& entry = page_->entries[number % kRecorderEntries];
  // A reader takes an entry only if its number is the same before and after reading; 0 marks it as incomplete.
  entry.number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  entry.step = step;
  entry.monotonic = Now(CLOCK_MONOTONIC);
  entry.wall = Now(CLOCK_REALTIME);
  entry.deadline = deadline.count();
  entry.state = static_cast<int32_t>(state);
  entry.microbatch = microbatch;
  entry.origin = origin;
  std::snprintf(entry.path, sizeof entry.path, "%s %zu", path.c_str(), index);
  CopyText(entry.instruction, instruction.data(), instruction.size());
  entry.number.store(number, std::memory_order_release);
  page_->state.store(static_cast<int32_t>(state), std::memory_order_relaxed);
  page_->begun.store(number, std::memory_order_release);
}

void Recorder::Launched() {
  const uint64_t number = page_->begun.load(std::memory_order_relaxed);
  if (launched_.load(std::memory_order_relaxed) == number) return;
  Completion* device = device_.load(std::memory_order_acquire);
  if (device != nullptr) waited_ += device->Mark(number);
  launched_.store(number, std::memory_order_release);
  // Without a device an instruction is done when its call has returned.
  if (device == nullptr && !failed_.load()) page_->done.store(number, std::memory_order_release);
}

void Recorder::Refresh() {
  Completion* device = device_.load(std::memory_order_acquire);
  if (device == nullptr) return;
  const uint64_t finished = device->Finished();
  // Checked after asking the device, not before: an abort between the two would look like progress.
  if (failed_.load()) return;
  uint64_t known = page_->done.load(std::memory_order_relaxed);
  // Several threads refresh: the number must never go back.
  while (known < finished && !page_->done.compare_exchange_weak(known, finished, std::memory_order_release)) {
  }
}

void Recorder::Done() {
  Launched();
  for (Refresh(); done() != begun(); Refresh()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  page_->state.store(static_cast<int32_t>(RecorderState::kDone), std::memory_order_release);
}

void Recorder::Pace(int64_t step, std::chrono::nanoseconds busy) {
  RecorderPace& pace = page_->paces[step % kRecorderPaces];
  pace.step.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  pace.busy = busy.count();
  pace.step.store(step, std::memory_order_release);
}

void Recorder::Fail(int exit_code, const char* message) {
  Refresh();  // the last moment at which the device's answer is still true
  failed_.store(true);
  page_->exit_code = exit_code;
  page_->failed = Now(CLOCK_MONOTONIC);
  CopyText(page_->message, message, std::strlen(message));
  page_->state.store(static_cast<int32_t>(RecorderState::kFailed), std::memory_order_release);
}

}  // namespace planwright::executor
