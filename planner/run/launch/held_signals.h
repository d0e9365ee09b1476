// Signals to this program as events: they are blocked and read from a descriptor.
#pragma once

#include <signal.h>

#include <chrono>

namespace planwright {

// Blocks SIGCHLD in the calling thread, and the signals that ask to end: SIGINT, SIGTERM, SIGUSR1 (by which Slurm can
// announce the end of a job), and SIGHUP, SIGQUIT and SIGPIPE (nobody reads what this program prints any more) unless
// the program was started with them ignored (nohup). The destructor restores the mask. Other threads must have them
// blocked already.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals();

  int fd() const { return fd_; }  // readable when a signal has come
  // The next signal that came, SIGCHLD excepted; 0 if there is none.
  int Next();
  // Waits until a signal comes, and returns it; 0: none came within the time.
  int WaitFor(std::chrono::milliseconds time);

 private:
  sigset_t before_;
  int fd_;
};

}  // namespace planwright
