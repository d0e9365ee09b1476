#include "planner/wire/records/recorder_reader.h"

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

// A rank counts an instruction as begun only after it has written the entry. So if it died while writing one, `begun`
// still points at the entry before.
RankPosition Copy(const RecorderPage& page) {
  RankPosition position;
  position.state = static_cast<RecorderState>(page.state.load(std::memory_order_acquire));
  position.begun = page.begun.load(std::memory_order_acquire);
  position.done = page.done.load(std::memory_order_acquire);
  position.exit_code = page.exit_code;
  position.failed = page.failed;
  position.host = Text(page.host);
  position.message = Text(page.message);
  position.pace = ReadPaces(page);
  position.last = ReadEntry(page, position.begun);
  position.finished = ReadEntry(page, position.done);
  if (position.done < position.begun) position.undone = ReadEntry(page, position.done + 1);
  return position;
}

}  // namespace

std::optional<RankPosition> ReadRecorder(const std::string& run_dir, int rank) {
  const int fd = open(RecorderPath(run_dir, rank).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  struct stat info;
  void* memory = MAP_FAILED;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size >= static_cast<off_t>(sizeof(RecorderPage))) {
    memory = mmap(nullptr, sizeof(RecorderPage), PROT_READ, MAP_SHARED, fd, 0);
  }
  close(fd);
  if (memory == MAP_FAILED) return std::nullopt;
  const auto& page = *static_cast<const RecorderPage*>(memory);
  std::optional<RankPosition> position;
  if (std::memcmp(page.magic, kRecorderMagic, sizeof kRecorderMagic) == 0 && page.rank == rank) position = Copy(page);
  munmap(memory, sizeof(RecorderPage));
  return position;
}

}  // namespace planwright
