// A pipe whose ends are closed on exec, and with it.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <utility>

namespace planwright {

struct Pipe {
  int read = -1, write = -1;
  Pipe() = default;
  Pipe(Pipe&& other) noexcept : read(std::exchange(other.read, -1)), write(std::exchange(other.write, -1)) {}
  Pipe& operator=(Pipe&&) = delete;
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }
  // False, with errno set: there is none left.
  bool Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  // The caller closes it; reads do not wait.
  int TakeRead() {
    fcntl(read, F_SETFL, fcntl(read, F_GETFL) | O_NONBLOCK);
    return std::exchange(read, -1);
  }
};

}  // namespace planwright
