#include "planner/run/launch/local_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "planner/base/files/exit_status.h"
#include "planner/run/launch/launch_log.h"

namespace planwright {
namespace {

// How long the end of a rank waits for its log. A file system that stands still for longer must not hide it.
constexpr std::chrono::seconds kPatienceWithLogs{5};

std::string RankText(int rank) { return "rank " + std::to_string(rank); }

// Nobody, if there is no process yet.
void SignalGroup(int pid, int number) {
  if (pid > 0) kill(-pid, number);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LocalProcesses>> LocalProcesses::Start(const std::vector<Command>& commands,
                                                                      const std::vector<int>& ranks,
                                                                      std::string run_dir, bool forks) {
  std::unique_ptr<LocalProcesses> processes(new LocalProcesses(std::move(run_dir)));
  if (!processes->run_dir_.empty()) {
    processes->logs_.emplace(processes->run_dir_, ranks);
    if (absl::Status status = processes->logs_->Open(); !status.ok()) return status;
  }
  if (forks && commands.size() > 1) {
    std::vector<ChildProcess> pipes;
    absl::StatusOr<std::unique_ptr<RankFork>> fork = RankFork::Start(commands, ranks, pipes);
    if (!fork.ok()) return fork.status();
    processes->fork_ = *std::move(fork);
    for (size_t i = 0; i < pipes.size(); ++i) processes->Add(ranks[i], pipes[i]);
    return processes;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    absl::StatusOr<ChildProcess> process = planwright::Start(commands[i]);
    if (!process.ok()) return process.status();
    processes->Add(ranks[i], *process);
    processes->Started(processes->children_.back(), process->pid);
  }
  return processes;
}

void LocalProcesses::Add(int rank, const ChildProcess& process) {
  children_.push_back({rank, -1, LinePipe(process.output), LinePipe(process.errors)});
}

void LocalProcesses::Started(Child& child, int pid) {
  child.pid = pid;
  LogEvent(RankText(child.rank) + " started as process " + std::to_string(pid));
}

LocalProcesses::~LocalProcesses() {
  if (fork_) {
    fork_->Signal(SIGKILL);
    // Ranks that it has forked tell of themselves at once.
    for (const auto until = Clock::now() + std::chrono::seconds(1); fork_ && Clock::now() < until;) {
      std::vector<ProcessEvent> events;
      TakeForked(events);
      if (fork_) poll(nullptr, 0, 1);
    }
    fork_.reset();
  }
  // A rank's own children must not outlive it, even where the rank has ended.
  for (const Child& child : children_) SignalGroup(child.pid, SIGKILL);
  for (const Child& child : children_) {
    if (child.alive && child.pid > 0) waitpid(child.pid, nullptr, 0);
  }
}

std::optional<RankPosition> LocalProcesses::Position(int rank) {
  return run_dir_.empty() ? std::nullopt : ReadRecorder(run_dir_, rank);
}

int LocalProcesses::Living() const {
  return static_cast<int>(
      std::count_if(children_.begin(), children_.end(), [](const Child& child) { return child.alive; }));
}

void LocalProcesses::Signal(int number) {
  if (number == SIGKILL && !killed_) killed_ = Clock::now();
  if (Living() > 0) LogEvent("sending signal " + std::to_string(number) + " to " + std::to_string(Living()) + " ranks");
  for (const Child& child : children_) {
    if (!child.alive) continue;
    SignalGroup(child.pid, number);
    SignalGroup(child.pid, SIGCONT);  // otherwise kEndSignal stays pending in a stopped process
  }
  if (!fork_) return;
  early_signals_.push_back(number);
  // It does not hold SIGUSR1 for its ranks: a new process has no pending signals.
  fork_->Signal(number);
}

std::vector<int> LocalProcesses::Descriptors() {
  std::vector<int> descriptors;
  if (fork_) descriptors = fork_->Descriptors();
  descriptors.push_back(signals_.fd());
  if (logs_) descriptors.push_back(logs_->fd());
  if (logs_ && logs_->full()) return descriptors;
  for (const Child& child : children_) {
    for (int fd : {child.output.fd(), child.errors.fd()}) {
      if (fd >= 0) descriptors.push_back(fd);
    }
  }
  return descriptors;
}

std::vector<ProcessEvent> LocalProcesses::Wait(const std::optional<Clock::time_point>& until) {
  std::vector<pollfd> fds;
  for (int fd : Descriptors()) fds.push_back({fd, POLLIN, 0});
  int timeout = -1;
  std::optional<Clock::time_point> due = until;
  if (killed_ && Living() > 0) due = std::min(*killed_ + patience_with_killed_, due.value_or(Clock::time_point::max()));
  for (const UntoldEnd& end : untold_) due = std::min(due.value_or(end.until), end.until);
  if (due) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now());
    timeout = static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX));
  }
  poll(fds.data(), fds.size(), timeout);
  return Poll();
}

std::vector<ProcessEvent> LocalProcesses::Poll() {
  std::vector<ProcessEvent> events;
  // Read signals before reaping children. Otherwise a SIGCHLD that arrives after Reap would be consumed here, and the
  // next Wait would not wake up for it.
  for (int number; (number = signals_.Next()) != 0;)
    events.push_back({.kind = ProcessEvent::Kind::kInterrupt, .signal = number});
  std::vector<ProcessEvent> ends;
  if (fork_) TakeForked(ends);
  Reap(ends);
  LeaveKilled(ends);
  DrainAll(ends, events);  // what a process printed comes before its end
  for (ProcessEvent& event : ends) {
    if (event.kind == ProcessEvent::Kind::kEnded) {
      untold_.push_back({std::move(event), Clock::now() + kPatienceWithLogs});
    } else {
      events.push_back(std::move(event));
    }
  }
  TellEnds(events);
  if (Living() == 0) {
    for (const Child& child : children_) SignalGroup(child.pid, SIGKILL);  // what the ranks started
  }
  return events;
}

void LocalProcesses::TakeForked(std::vector<ProcessEvent>& events) {
  if (const std::optional<int> status = fork_->Status()) fate_ = *status;
  const bool stops = WIFSTOPPED(fate_) || WIFCONTINUED(fate_);
  for (const ToldRank& told : fork_->Told()) {
    // Another program than an executor may write what it likes.
    if (told.local_rank < 0 || told.local_rank >= std::ssize(children_) || told.process <= 1) continue;
    Child& child = children_[static_cast<size_t>(told.local_rank)];
    if (child.pid > 0) continue;
    Started(child, told.process);
    for (const int number : early_signals_) SignalGroup(told.process, number);
  }
  // Ranks that are not forked share the fate of the process that should have done it.
  bool all = true;
  for (Child& child : children_) {
    if (child.pid > 0 || !(stops || fork_->done())) continue;
    all = false;
    if (fate_ == W_EXITCODE(0, 0)) {
      events.push_back({.kind = ProcessEvent::Kind::kLine,
                        .rank = child.rank,
                        .is_error = true,
                        .text = "the executor ended without starting this rank; it is no executor of Planwright"});
      fate_ = W_EXITCODE(kExitInternal, 0);
    }
    Take(child, fate_, events);
  }
  if (stops) fate_ = 0;
  if (!fork_->done()) return;
  if (all) fork_->LetGo();
  fork_.reset();
}

void LocalProcesses::Reap(std::vector<ProcessEvent>& events) {
  for (Child& child : children_) {
    int status = 0, told = 0;
    while (child.alive && child.pid > 0 &&
           (told = waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED)) == child.pid)
      Take(child, status, events);
    // Ranks are no children of this process before the one that forks them has ended.
    if (told >= 0 || errno != ECHILD || fork_) continue;
    events.push_back({.kind = ProcessEvent::Kind::kLine,
                      .rank = child.rank,
                      .is_error = true,
                      .text = "nobody knows how this process ended: another part of this program waited for it"});
    SignalGroup(child.pid, SIGKILL);  // it may be no child of this program
    Take(child, W_EXITCODE(kExitInternal, 0), events);
  }
}

void LocalProcesses::LeaveKilled(std::vector<ProcessEvent>& events) {
  if (!killed_ || Clock::now() < *killed_ + patience_with_killed_) return;
  for (Child& child : children_) {
    if (!child.alive) continue;
    const std::string text = "process " + std::to_string(child.pid) +
                             " does not end, though it was sent SIGKILL: the kernel waits for a device or a file "
                             "system in it. It is left behind";
    events.push_back({.kind = ProcessEvent::Kind::kLine, .rank = child.rank, .is_error = true, .text = text});
    Take(child, W_EXITCODE(0, SIGKILL), events);
  }
}

void LocalProcesses::Take(Child& child, int status, std::vector<ProcessEvent>& events) {
  ProcessEvent event{.rank = child.rank};
  if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
    event.kind = WIFSTOPPED(status) ? ProcessEvent::Kind::kStopped : ProcessEvent::Kind::kContinued;
    LogEvent(RankText(child.rank) + (WIFSTOPPED(status) ? " is stopped" : " goes on"));
  } else {
    child.alive = false;
    if (WIFSIGNALED(status)) {
      event.signal = WTERMSIG(status);
      LogEvent(RankText(child.rank) + " ended by signal " + std::to_string(event.signal));
      if (event.signal == SIGKILL) {
        const MemoryKills now = ReadMemoryKills();
        if (now.count > kills_.count) event.text = now.where;
      }
    } else {
      event.exit_status = WEXITSTATUS(status);
      LogEvent(RankText(child.rank) + " ended with exit status " + std::to_string(event.exit_status));
    }
  }
  events.push_back(event);
}

void LocalProcesses::DrainAll(const std::vector<ProcessEvent>& ends, std::vector<ProcessEvent>& events) {
  for (Child& child : children_) {
    const bool ended = std::any_of(ends.begin(), ends.end(), [&](const ProcessEvent& end) {
      return end.kind == ProcessEvent::Kind::kEnded && end.rank == child.rank;
    });
    // Ranks that print wait while their logs do not take more.
    if (logs_ && !ended && logs_->full()) continue;
    const auto drain = [&](LinePipe& pipe, bool is_error) {
      pipe.Drain([&](std::string_view line) {
        events.push_back(
            {.kind = ProcessEvent::Kind::kLine, .rank = child.rank, .is_error = is_error, .text = std::string(line)});
        if (logs_) logs_->Line(child.rank, line);
      });
    };
    drain(child.output, false);
    drain(child.errors, true);
  }
}

void LocalProcesses::TellEnds(std::vector<ProcessEvent>& events) {
  std::vector<ProcessEvent> ends;
  std::erase_if(untold_, [&](UntoldEnd& end) {
    if (logs_ && !logs_->Written(end.event.rank) && Clock::now() < end.until) return false;
    ends.push_back(std::move(end.event));
    return true;
  });
  // Asked last: a line that was lost before an end is told before it.
  if (logs_) {
    for (RankLogs::Problem& problem : logs_->TakeProblems()) {
      events.push_back(
          {.kind = ProcessEvent::Kind::kLine, .rank = problem.rank, .is_error = true, .text = std::move(problem.text)});
    }
  }
  events.insert(events.end(), ends.begin(), ends.end());
}

}  // namespace planwright
