#include "planner/launch/supervise.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <string>
#include <utility>

#include "planner/launch/launch_log.h"
#include "planner/run_files/exit_status.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;

// Reads a non-blocking pipe and splits the bytes into lines.
class LinePipe {
 public:
  explicit LinePipe(int fd) : fd_(fd) {}
  LinePipe(LinePipe&& other) noexcept : fd_(std::exchange(other.fd_, -1)), rest_(std::move(other.rest_)) {}
  ~LinePipe() { Close(); }

  int fd() const { return fd_; }

  // Reads everything that is there. Returns false once the writer has closed the pipe; a last line without a line break
  // is passed on then.
  template <typename Sink>
  bool Drain(Sink sink) {
    char bytes[65536];
    while (fd_ >= 0) {
      const ssize_t count = read(fd_, bytes, sizeof bytes);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return true;
      if (count <= 0) break;
      rest_.append(bytes, count);
      Emit(sink);
    }
    if (!rest_.empty()) sink(rest_);
    rest_.clear();
    Close();
    return false;
  }

 private:
  template <typename Sink>
  void Emit(Sink sink) {
    size_t from = 0;
    for (size_t end; (end = rest_.find('\n', from)) != std::string::npos; from = end + 1) {
      sink(std::string_view(rest_).substr(from, end - from));
    }
    rest_.erase(0, from);
  }
  void Close() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

  int fd_;
  std::string rest_;
};

// Blocks the signals that the supervisor handles and reads them from a descriptor; the destructor restores the mask.
// SIGHUP and SIGQUIT stay ignored if the program was started with them ignored (nohup).
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : {SIGCHLD, SIGINT, SIGTERM}) sigaddset(&set, number);
    for (int number : {SIGHUP, SIGQUIT}) {
      struct sigaction action {};
      if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&set, number);
    }
    sigprocmask(SIG_BLOCK, &set, &before_);
    fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~HeldSignals() {
    close(fd_);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  int fd() const { return fd_; }
  // The next signal that arrived, SIGCHLD excepted; 0 if there is none.
  int Next() {
    signalfd_siginfo info;
    while (read(fd_, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo != SIGCHLD) return static_cast<int>(info.ssi_signo);
    }
    return 0;
  }

 private:
  sigset_t before_;
  int fd_;
};

class Supervisor {
 public:
  Supervisor(const LineSink& sink, const SupervisionTimes& times) : sink_(sink), times_(times) {}
  // Ends children that are still alive, which is only the case if StartAll failed.
  ~Supervisor() {
    SignalAll(SIGKILL);
    while (Alive() > 0) ReapOne(waitpid(-1, &status_, 0));
  }

  absl::Status StartAll(const std::vector<Command>& commands) {
    for (const Command& command : commands) {
      absl::StatusOr<ChildProcess> process = Start(command);
      if (!process.ok()) return process.status();
      LogEvent("rank " + std::to_string(children_.size()) + " started as process " + std::to_string(process->pid));
      children_.push_back({process->pid, LinePipe(process->output), LinePipe(process->errors)});
    }
    return absl::OkStatus();
  }

  Supervision Run() {
    while (Alive() > 0) {
      Wait();
      // Read signals before reaping children. Otherwise a SIGCHLD that arrives after Reap would be consumed here, and
      // the next Wait would not wake up for it.
      const int number = signals_.Next();
      Reap();
      DrainAll();
      if (number != 0) Interrupt(number);
      EndStopped();
      EndOthers();
    }
    // A rank's own children must not outlive it.
    for (const Child& child : children_) kill(-child.pid, SIGKILL);
    DrainAll();
    return {ends_, Cause(), stopped_, interrupted_by_};
  }

 private:
  struct Child {
    int pid;
    LinePipe output, errors;
    bool alive = true;
    std::vector<int> sent = {};  // signals we sent it
    std::optional<Clock::time_point> stopped_since = {};
  };

  size_t Alive() const {
    return std::count_if(children_.begin(), children_.end(), [](const Child& child) { return child.alive; });
  }

  void Wait() {
    std::vector<pollfd> fds = {{signals_.fd(), POLLIN, 0}};
    for (const Child& child : children_) {
      for (int fd : {child.output.fd(), child.errors.fd()}) {
        if (fd >= 0) fds.push_back({fd, POLLIN, 0});
      }
    }
    std::optional<Clock::time_point> until = deadline_;
    for (const Child& child : children_) {
      if (stage_ == Stage::kRunning && child.alive && child.stopped_since)
        until = Sooner(until, *child.stopped_since + times_.stopped);
    }
    int timeout = -1;
    if (until) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
      timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
    }
    poll(fds.data(), fds.size(), timeout);
  }

  static Clock::time_point Sooner(const std::optional<Clock::time_point>& a, Clock::time_point b) {
    return a ? std::min(*a, b) : b;
  }

  void Reap() {
    for (;;) {
      const int pid = waitpid(-1, &status_, WNOHANG | WUNTRACED | WCONTINUED);
      if (pid <= 0) return;
      ReapOne(pid);
    }
  }

  void ReapOne(int pid) {
    auto child =
        std::find_if(children_.begin(), children_.end(), [&](const Child& c) { return c.pid == pid && c.alive; });
    if (child == children_.end()) return;
    if (WIFSTOPPED(status_) || WIFCONTINUED(status_)) {
      child->stopped_since.reset();
      if (WIFSTOPPED(status_)) child->stopped_since = Clock::now();
      LogEvent("rank " + std::to_string(child - children_.begin()) +
               (WIFSTOPPED(status_) ? " is stopped" : " goes on"));
      return;
    }
    child->alive = false;
    ProcessEnd end{static_cast<int>(child - children_.begin())};
    if (WIFSIGNALED(status_)) {
      end.signal = WTERMSIG(status_);
      end.sent_by_us = std::find(child->sent.begin(), child->sent.end(), end.signal) != child->sent.end();
    } else {
      end.exit_status = WEXITSTATUS(status_);
    }
    LogEvent("rank " + std::to_string(end.child) +
             (end.signal != 0 ? " ended by signal " + std::to_string(end.signal)
                              : " ended with exit status " + std::to_string(end.exit_status)));
    // A child that has saved its work leaves others that are still saving theirs.
    const bool alone = stage_ == Stage::kRunning || (stage_ == Stage::kSaving && end.exit_status != kExitPreempted);
    if (end.failed() && alone) Enter(Stage::kSettling, times_.settle);
    ends_.push_back(end);
  }

  void DrainAll() {
    for (size_t i = 0; i < children_.size(); ++i) {
      Child& child = children_[i];
      child.output.Drain([&](std::string_view line) { sink_(static_cast<int>(i), false, line); });
      child.errors.Drain([&](std::string_view line) { sink_(static_cast<int>(i), true, line); });
    }
  }

  // The first signal is passed on to the ranks, so that they can end well. A second one kills them at once.
  void Interrupt(int number) {
    if (interrupted_by_ != 0) {
      SignalAll(SIGKILL);
      return;
    }
    interrupted_by_ = number;
    if (times_.save.count() > 0 && stage_ == Stage::kRunning) {
      SignalAll(SIGUSR1);
      return Enter(Stage::kSaving, times_.save);
    }
    SignalAll(number == SIGINT ? SIGINT : SIGTERM);  // SIGQUIT would make every rank write a core file
    Enter(Stage::kEnding, times_.grace);
  }

  void EndStopped() {
    if (stage_ != Stage::kRunning) return;
    for (const Child& child : children_) {
      if (!child.alive || !child.stopped_since || Clock::now() < *child.stopped_since + times_.stopped) continue;
      Enter(Stage::kEnding, times_.grace);
      return SignalAll(SIGTERM);
    }
  }

  void EndOthers() {
    if (!deadline_ || Clock::now() < *deadline_) return;
    if (stage_ == Stage::kSettling || stage_ == Stage::kSaving) {
      SignalAll(SIGTERM);
      Enter(Stage::kEnding, times_.grace);
    } else if (stage_ == Stage::kEnding) {
      SignalAll(SIGKILL);
      stage_ = Stage::kKilled;
      deadline_.reset();
    }
  }

  void SignalAll(int number) {
    if (Alive() > 0) LogEvent("sending signal " + std::to_string(number) + " to " + std::to_string(Alive()) + " ranks");
    for (Child& child : children_) {
      if (!child.alive) continue;
      child.sent.push_back(number);
      kill(-child.pid, number);
      kill(-child.pid, SIGCONT);  // otherwise SIGTERM stays pending in a stopped process
    }
  }

  enum class Stage { kRunning, kSaving, kSettling, kEnding, kKilled };
  void Enter(Stage stage, std::chrono::milliseconds time) {
    if (stage_ == Stage::kRunning) {
      const auto stopped = std::find_if(children_.begin(), children_.end(),
                                        [](const Child& child) { return child.alive && child.stopped_since; });
      if (stopped != children_.end()) stopped_ = static_cast<int>(stopped - children_.begin());
    }
    stage_ = stage;
    deadline_ = Clock::now() + time;
  }

  std::optional<ProcessEnd> Cause() const {
    const ProcessEnd* follower = nullptr;
    for (const ProcessEnd& end : ends_) {
      if (!end.failed() || end.sent_by_us) continue;
      if (interrupted_by_ != 0 && (end.exit_status == kExitPreempted || end.exit_status == 128 + interrupted_by_))
        continue;
      if (end.signal != 0 || !MayFollowFromAnother(end.exit_status)) return end;
      if (!follower) follower = &end;
    }
    if (!follower) return std::nullopt;
    return *follower;
  }

  const LineSink& sink_;
  const SupervisionTimes times_;
  HeldSignals signals_;
  std::vector<Child> children_;
  std::vector<ProcessEnd> ends_;
  Stage stage_ = Stage::kRunning;
  std::optional<Clock::time_point> deadline_;
  std::optional<int> stopped_;
  int interrupted_by_ = 0;
  int status_ = 0;
};

}  // namespace

absl::StatusOr<Supervision> Supervise(const std::vector<Command>& commands, const LineSink& sink,
                                      const SupervisionTimes& times) {
  Supervisor supervisor(sink, times);
  if (absl::Status status = supervisor.StartAll(commands); !status.ok()) return status;
  return supervisor.Run();
}

}  // namespace planwright
