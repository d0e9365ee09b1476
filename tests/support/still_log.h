// A log whose file system stands still: a pipe in its place, which takes what a pipe holds and no more until somebody
// reads it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "tests/support/eventually.h"

namespace planwright::testing {

class StillLog {
 public:
  explicit StillLog(std::string path) : path_(std::move(path)) {
    if (mkfifo(path_.c_str(), 0600) == 0) fd_ = open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  ~StillLog() {
    if (fd_ >= 0) close(fd_);
  }
  bool made() const { return fd_ >= 0; }

  // Logs are opened so that writes to a pipe fail when it is full. From here on those of this process wait. Returns
  // when the process has opened the log.
  static bool MakeWriterWait(const std::string& path) {
    return Eventually([&] {
      std::error_code error;
      bool found = false;
      for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        if (std::filesystem::read_symlink(entry.path(), error) != path || error) continue;
        const int fd = std::stoi(entry.path().filename());
        const int flags = fcntl(fd, F_GETFL);
        if ((flags & O_ACCMODE) == O_RDONLY) continue;
        fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        found = true;
      }
      return found;
    });
  }

  // All that is written until the writer closes the log.
  std::string Read() {
    fcntl(fd_, F_SETFL, 0);
    std::string text;
    char bytes[65536];
    for (ssize_t count; (count = read(fd_, bytes, sizeof bytes)) > 0;) text.append(bytes, count);
    return text;
  }

 private:
  const std::string path_;
  int fd_ = -1;
};

}  // namespace planwright::testing
