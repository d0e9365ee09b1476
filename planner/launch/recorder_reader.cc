#include "planner/launch/recorder_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace planwright {
namespace {

template <size_t n>
std::string Text(const char (&bytes)[n]) {
  return std::string(bytes, strnlen(bytes, n));
}

RankPosition Copy(const RecorderPage& page) {
  RankPosition position;
  position.state = static_cast<RecorderState>(page.state);
  position.step = page.step;
  position.microbatch = page.microbatch;
  position.origin = page.origin;
  position.exit_code = page.exit_code;
  position.instructions = page.instructions;
  position.monotonic = page.monotonic;
  position.host = Text(page.host);
  position.path = Text(page.path);
  position.instruction = Text(page.instruction);
  position.message = Text(page.message);
  return position;
}

// A writer that died inside a write leaves the sequence odd for ever: after some attempts the page is taken as it is.
RankPosition CopyBetweenWrites(const RecorderPage& page) {
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const uint64_t before = page.sequence.load(std::memory_order_acquire);
    RankPosition position = Copy(page);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && page.sequence.load(std::memory_order_relaxed) == before) return position;
  }
  return Copy(page);
}

}  // namespace

std::optional<RankPosition> ReadRecorder(const std::string& run_dir, int rank) {
  const int fd = open(RecorderPath(run_dir, rank).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  struct stat info;
  void* memory = MAP_FAILED;
  if (fstat(fd, &info) == 0 && info.st_size >= static_cast<off_t>(sizeof(RecorderPage))) {
    memory = mmap(nullptr, sizeof(RecorderPage), PROT_READ, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return std::nullopt;
  const auto& page = *static_cast<const RecorderPage*>(memory);
  std::optional<RankPosition> position;
  if (std::memcmp(page.magic, kRecorderMagic, sizeof kRecorderMagic) == 0 && page.rank == rank) position = CopyBetweenWrites(page);
  munmap(memory, sizeof(RecorderPage));
  return position;
}

}  // namespace planwright
