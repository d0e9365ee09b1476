#include "executor/telemetry/recorder.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace planwright::executor {
namespace {

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

// Marks the page as being written for its lifetime.
class Writing {
 public:
  explicit Writing(RecorderPage* page) : page_(page) { page_->sequence.fetch_add(1, std::memory_order_acq_rel); }
  ~Writing() { page_->sequence.fetch_add(1, std::memory_order_release); }

 private:
  RecorderPage* page_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Recorder>> Recorder::Open(const std::string& run_dir, int rank, const std::string& host) {
  const std::string path = RecorderPath(run_dir, rank);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0 || posix_fallocate(file, 0, kRecorderFileBytes) != 0) {
    const std::string why = std::strerror(errno);
    if (file >= 0) close(file);
    return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": ", why));
  }
  void* memory = mmap(nullptr, kRecorderFileBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return absl::ResourceExhaustedError(absl::StrCat("cannot map ", path, ": ", std::strerror(errno)));
  auto* page = static_cast<RecorderPage*>(memory);
  auto recorder = std::unique_ptr<Recorder>(new Recorder(page));
  {
    Writing writing(page);
    page->rank = rank;
    page->pid = static_cast<int32_t>(getpid());
    page->microbatch = page->origin = -1;
    CopyText(page->host, host.data(), host.size());
    recorder->Stamp();
    std::memcpy(page->magic, kRecorderMagic, sizeof kRecorderMagic);
  }
  return recorder;
}

Recorder::~Recorder() { munmap(page_, kRecorderFileBytes); }

void Recorder::Stamp() {
  page_->monotonic = Now(CLOCK_MONOTONIC);
  page_->wall = Now(CLOCK_REALTIME);
}

void Recorder::Begin(RecorderState state, int64_t step, int microbatch, int origin, const std::string& path, size_t place,
                     const std::string& instruction) {
  Writing writing(page_);
  page_->state = static_cast<int32_t>(state);
  page_->step = step;
  page_->microbatch = microbatch;
  page_->origin = origin;
  ++page_->instructions;
  Stamp();
  std::snprintf(page_->path, sizeof page_->path, "%s %zu", path.c_str(), place);
  CopyText(page_->instruction, instruction.data(), instruction.size());
}

void Recorder::Done() {
  Writing writing(page_);
  page_->state = static_cast<int32_t>(RecorderState::kDone);
  Stamp();
}

void Recorder::Fail(int exit_code, const char* message) {
  Writing writing(page_);
  page_->state = static_cast<int32_t>(RecorderState::kFailed);
  page_->exit_code = exit_code;
  CopyText(page_->message, message, std::strlen(message));
}

}  // namespace planwright::executor
