#include "planner/cli/background_output.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <iostream>
#include <mutex>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;

// The lines of one stream and the thread that writes them. Nobody can call the thread back from a write that waits, so
// it may outlive the stream, until the process ends.
class LineWriter {
 public:
  LineWriter(int fd, const OutputLimits& limits) : fd_(fd), limits_(limits) {}

  // False: an earlier write failed.
  bool Push(std::string text) {
    std::unique_lock lock(mutex_);
    WaitUntil(lock, [&] { return waiting_ + text.size() <= limits_.waiting_bytes || lines_.empty(); });
    if (failed_) return false;
    if (waiting_ + text.size() > limits_.waiting_bytes && !lines_.empty()) {
      ++left_out_, lost_ = true;
      return true;
    }
    if (left_out_ > 0)
      Add("[" + std::to_string(left_out_) + (left_out_ == 1 ? " line was" : " lines were") +
          " left out here: nobody read them]\n");
    left_out_ = 0;
    Add(std::move(text));
    return true;
  }

  // Returns once all is written, or when the patience is over.
  void Wait() {
    std::unique_lock lock(mutex_);
    WaitUntil(lock, [&] { return lines_.empty(); });
  }
  // The same, for as long as somebody reads.
  void WaitWhileRead() {
    std::unique_lock lock(mutex_);
    while (!failed_ && !lines_.empty() && Clock::now() < moved_ + limits_.patience)
      changed_.wait_until(lock, moved_ + limits_.patience);
  }
  bool written() const {
    const std::scoped_lock lock(mutex_);
    return lines_.empty() && !failed_ && !lost_;
  }

  // Waits as long as it takes, in parts that a pipe takes at once: so a slow reader is no dead one. False: it failed.
  bool Write(std::string_view text) {
    constexpr size_t kPart = 4096;
    while (!text.empty()) {
      const ssize_t count = write(fd_, text.data(), std::min(text.size(), kPart));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) {  // another program has set O_NONBLOCK
        pollfd fd = {fd_, POLLOUT, 0};
        poll(&fd, 1, -1);
        continue;
      }
      if (count < 0) {
        // The signal of the failed write waits in this thread, where nobody looks.
        if (errno == EPIPE) kill(getpid(), SIGPIPE);
        return false;
      }
      text.remove_prefix(static_cast<size_t>(count));
      const std::scoped_lock lock(mutex_);
      moved_ = Clock::now();
    }
    return true;
  }

  void Run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return done_ || !lines_.empty(); });
      if (lines_.empty()) return;
      const std::string& line = lines_.front();  // which stays there until it is written
      lock.unlock();
      const bool written = Write(line);
      lock.lock();
      waiting_ -= line.size();
      lines_.pop_front();
      if (!written) {
        failed_ = true, waiting_ = 0;
        lines_.clear();
      }
      if (lines_.empty()) behind_ = false;
      changed_.notify_all();
    }
  }
  // The thread ends when there is no more to write. True: that is now.
  bool End() {
    const std::scoped_lock lock(mutex_);
    done_ = true;
    changed_.notify_all();
    return lines_.empty();
  }

 private:
  void Add(std::string text) {
    if (lines_.empty()) moved_ = Clock::now();
    waiting_ += text.size();
    lines_.push_back(std::move(text));
    changed_.notify_all();
  }

  // Once for a reader who falls behind: whoever prints has more to do than to keep a slow one company.
  template <typename Condition>
  void WaitUntil(std::unique_lock<std::mutex>& lock, const Condition& holds) {
    const Clock::time_point end = Clock::now() + limits_.patience;
    while (!failed_ && !behind_ && !holds()) {
      const Clock::time_point until = std::min(end, moved_ + limits_.patience);
      behind_ = Clock::now() >= until;
      if (!behind_) changed_.wait_until(lock, until);
    }
  }

  const int fd_;
  const OutputLimits limits_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;  // a deque keeps its front where it is while others are added
  size_t waiting_ = 0;             // bytes of them
  Clock::time_point moved_;        // when something was written last, or there was nothing to write
  int64_t left_out_ = 0;           // lines, since the last one that was not
  bool behind_ = false;            // somebody has waited in vain since there was nothing to write
  bool lost_ = false, failed_ = false, done_ = false;
};

}  // namespace

class BackgroundStream::Buffer : public std::streambuf {
 public:
  Buffer(int fd, bool must_be_whole, const OutputLimits& limits)
      : must_be_whole_(must_be_whole), writer_(std::make_shared<LineWriter>(fd, limits)) {
    // Signals are the main thread's; but a job in the background may not write, and stops as a whole.
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGTTOU);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([writer = writer_] { writer->Run(); });
    } catch (const std::system_error&) {
    }  // there is no thread left: then the stream is written as ever
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Buffer() override {
    if (thread_.joinable()) writer_->End() ? thread_.join() : thread_.detach();
  }

  const std::shared_ptr<LineWriter>& writer() const { return writer_; }
  void set_other(std::shared_ptr<LineWriter> other) { other_ = std::move(other); }
  bool HandOver() {
    if (line_.empty()) return true;
    if (other_ != nullptr) other_->Wait();
    std::string text = std::exchange(line_, {});
    return thread_.joinable() ? writer_->Push(std::move(text)) : writer_->Write(text);
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char byte = traits_type::to_char_type(c);
    return xsputn(&byte, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    const std::string_view added(text, static_cast<size_t>(count));
    const size_t last = added.rfind('\n');
    if (last == std::string_view::npos) {
      line_ += added;
      return count;
    }
    line_ += added.substr(0, last + 1);
    if (!HandOver()) return 0;
    line_ = added.substr(last + 1);
    return count;
  }
  int sync() override {
    const bool taken = HandOver();
    must_be_whole_ ? writer_->WaitWhileRead() : writer_->Wait();
    return taken && (!must_be_whole_ || writer_->written()) ? 0 : -1;
  }

 private:
  const bool must_be_whole_;
  const std::shared_ptr<LineWriter> writer_;
  std::shared_ptr<LineWriter> other_;
  std::string line_;  // that has not ended
  std::thread thread_;
};

BackgroundStream::BackgroundStream(std::ostream& stream, int fd, bool must_be_whole, const OutputLimits& limits)
    : stream_(stream), buffer_(std::make_unique<Buffer>(fd, must_be_whole, limits)), before_(stream.flush().rdbuf()),
      flags_(stream.flags()), tied_(stream.tie(nullptr)) {
  const std::ios::iostate state = stream.rdstate();
  stream.rdbuf(buffer_.get());  // forgets it
  stream.setstate(state);
  stream.unsetf(std::ios::unitbuf);  // a flush may wait
}

BackgroundStream::~BackgroundStream() {
  stream_.flush();
  buffer_->writer()->WaitWhileRead();
  const bool whole = stream_.good() && buffer_->writer()->written();
  stream_.rdbuf(before_);
  stream_.flags(flags_);
  stream_.tie(tied_);
  if (!whole) stream_.setstate(std::ios::badbit);
}

void BackgroundStream::KeepOrderWith(const BackgroundStream& other) { buffer_->set_other(other.buffer_->writer()); }

struct BackgroundOutput::Streams {
  Streams() : out(std::cout, STDOUT_FILENO, /*must_be_whole=*/true), errors(std::cerr, STDERR_FILENO, false) {
    out.KeepOrderWith(errors);
    errors.KeepOrderWith(out);
  }
  BackgroundStream out, errors;
};

BackgroundOutput::BackgroundOutput() {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, &before_);
  streams_ = std::make_unique<Streams>();
}

BackgroundOutput::~BackgroundOutput() {
  streams_.reset();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace planwright
