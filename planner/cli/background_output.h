// Output of a command that has more to do than to wait for whoever reads it: a pager that is not scrolled, a terminal
// that is stopped or whose connection hangs. Signals must be taken and ranks watched meanwhile.
#pragma once

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>

namespace planwright {

struct OutputLimits {
  // A reader who falls behind is waited for once for so long, and at the end for as long as it takes something within
  // this time.
  std::chrono::milliseconds patience{2000};
  // What may wait for a reader. Lines beyond are left out, and their number is printed in their place.
  size_t waiting_bytes = size_t{8} << 20;
};

// One stream. While this lives, what is printed on it goes in whole lines to a thread that writes them to `fd`. A flush
// waits until all is written, within the patience. A write that fails sets the badbit of the stream, as always; a
// closed pipe also sends SIGPIPE to this process. `must_be_whole`: a flush waits while somebody reads, and also fails
// if lines were left out, or if nobody reads them; else the stream goes on when its reader does.
class BackgroundStream {
 public:
  BackgroundStream(std::ostream& stream, int fd, bool must_be_whole, const OutputLimits& limits = {});
  BackgroundStream(const BackgroundStream&) = delete;
  BackgroundStream& operator=(const BackgroundStream&) = delete;
  // Waits while somebody reads. The badbit stays if not all is written.
  ~BackgroundStream();

  // Before a line of this stream is printed, those of the other one are, unless nobody reads them.
  void KeepOrderWith(const BackgroundStream& other);

 private:
  class Buffer;
  std::ostream& stream_;
  std::unique_ptr<Buffer> buffer_;
  std::streambuf* const before_;
  const std::ios::fmtflags flags_;
  std::ostream* const tied_;
};

// std::cout and std::cerr. SIGPIPE is blocked meanwhile: it is for HeldSignals (planner/run/launch/held_signals.h).
class BackgroundOutput {
 public:
  BackgroundOutput();
  BackgroundOutput(const BackgroundOutput&) = delete;
  BackgroundOutput& operator=(const BackgroundOutput&) = delete;
  ~BackgroundOutput();

 private:
  struct Streams;
  std::unique_ptr<Streams> streams_;
  sigset_t before_;
};

}  // namespace planwright
