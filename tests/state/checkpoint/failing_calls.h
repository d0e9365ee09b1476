// Makes system calls of this process fail, as a failing file system does: the answer is an error, whether or not the
// call was carried out. A test binary that includes this file (once) calls these functions in place of the library's.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace planwright::testing {

// How often a call still succeeds before it fails; below 0: it always succeeds.
struct FailingCalls {
  int fsync = -1, close = -1, rename = -1, write = -1;
  size_t write_most = SIZE_MAX;  // bytes that one write() takes
  bool carried_out = true;       // the call that fails has been carried out
  int error = EIO;
};
inline FailingCalls failing;

inline bool FailsNow(int& left) { return left >= 0 && left-- == 0; }

}  // namespace planwright::testing

extern "C" {

int fsync(int fd) {
  using planwright::testing::failing;
  const bool fails = planwright::testing::FailsNow(failing.fsync);
  const int result = fails && !failing.carried_out ? 0 : static_cast<int>(syscall(SYS_fsync, fd));
  if (!fails) return result;
  errno = failing.error;
  return -1;
}

int close(int fd) {
  using planwright::testing::failing;
  const bool fails = planwright::testing::FailsNow(failing.close);
  const int result = static_cast<int>(syscall(SYS_close, fd));
  if (!fails) return result;
  errno = failing.error;
  return -1;
}

// One that fails has written nothing.
ssize_t write(int fd, const void* bytes, size_t count) {
  using planwright::testing::failing;
  if (!planwright::testing::FailsNow(failing.write))
    return syscall(SYS_write, fd, bytes, std::min(count, failing.write_most));
  errno = failing.error;
  return -1;
}

int rename(const char* from, const char* to) {
  using planwright::testing::failing;
  const bool fails = planwright::testing::FailsNow(failing.rename);
  const int result =
      fails && !failing.carried_out ? 0 : static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
  if (!fails) return result;
  errno = failing.error;
  return -1;
}

}  // extern "C"
