#include "planner/launch/local_processes.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <utility>

#include "planner/launch/launch_log.h"

namespace planwright {
namespace {

std::string RankText(int rank) { return "rank " + std::to_string(rank); }

}  // namespace

absl::StatusOr<std::unique_ptr<LocalProcesses>> LocalProcesses::Start(const std::vector<Command>& commands,
                                                                      const std::vector<int>& ranks,
                                                                      std::string run_dir) {
  std::unique_ptr<LocalProcesses> processes(new LocalProcesses(std::move(run_dir)));
  if (!processes->run_dir_.empty()) {
    processes->logs_.emplace(processes->run_dir_, ranks);
    if (absl::Status status = processes->logs_->Open(); !status.ok()) return status;
  }
  for (size_t i = 0; i < commands.size(); ++i) {
    absl::StatusOr<ChildProcess> process = planwright::Start(commands[i]);
    if (!process.ok()) return process.status();
    LogEvent(RankText(ranks[i]) + " started as process " + std::to_string(process->pid));
    processes->children_.push_back({ranks[i], process->pid, LinePipe(process->output), LinePipe(process->errors)});
  }
  return processes;
}

LocalProcesses::~LocalProcesses() {
  // A rank's own children must not outlive it, even where the rank has ended.
  for (const Child& child : children_) kill(-child.pid, SIGKILL);
  for (const Child& child : children_) {
    if (child.alive) waitpid(child.pid, nullptr, 0);
  }
}

std::optional<RankPosition> LocalProcesses::Position(int rank) {
  return run_dir_.empty() ? std::nullopt : ReadRecorder(run_dir_, rank);
}

int LocalProcesses::alive() const {
  return static_cast<int>(
      std::count_if(children_.begin(), children_.end(), [](const Child& child) { return child.alive; }));
}

void LocalProcesses::Signal(int number) {
  if (alive() > 0) LogEvent("sending signal " + std::to_string(number) + " to " + std::to_string(alive()) + " ranks");
  for (const Child& child : children_) {
    if (!child.alive) continue;
    kill(-child.pid, number);
    kill(-child.pid, SIGCONT);  // otherwise SIGTERM stays pending in a stopped process
  }
}

std::vector<int> LocalProcesses::Descriptors() const {
  std::vector<int> descriptors = {signals_.fd()};
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
  if (until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*until - Clock::now());
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
  Reap(ends);
  DrainAll(events);  // what a process printed comes before its end
  events.insert(events.end(), ends.begin(), ends.end());
  if (alive() == 0) {
    for (const Child& child : children_) kill(-child.pid, SIGKILL);  // what the ranks started
  }
  return events;
}

void LocalProcesses::Reap(std::vector<ProcessEvent>& events) {
  for (Child& child : children_) {
    int status = 0;
    while (child.alive && waitpid(child.pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == child.pid) {
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
  }
}

void LocalProcesses::DrainAll(std::vector<ProcessEvent>& events) {
  for (Child& child : children_) {
    const auto drain = [&](LinePipe& pipe, bool is_error) {
      const auto tell = [&](bool error, std::string text) {
        events.push_back(
            {.kind = ProcessEvent::Kind::kLine, .rank = child.rank, .is_error = error, .text = std::move(text)});
      };
      pipe.Drain([&](std::string_view line) {
        tell(is_error, std::string(line));
        if (!logs_) return;
        if (std::string problem = logs_->Line(child.rank, line); !problem.empty()) tell(true, std::move(problem));
      });
    };
    drain(child.output, false);
    drain(child.errors, true);
  }
}

}  // namespace planwright
