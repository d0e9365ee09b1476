#include "planner/run/launch/rank_logs.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

namespace planwright {
namespace {

// Of the memory for a line that waits: short ones count, too.
constexpr size_t kOfALine = 64;

}  // namespace

RankLogs::RankLogs(const std::string& run_dir, const std::vector<int>& ranks)
    : changed_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  for (int rank : ranks) logs_.try_emplace(rank, run_dir + "/logs", RankOutputName(rank));
}

RankLogs::~RankLogs() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  came_.notify_all();
  if (writer_.joinable()) writer_.join();
}

absl::Status RankLogs::Open() {
  for (auto& [rank, log] : logs_) {
    if (absl::Status status = log.Open(); !status.ok()) return status;
  }
  // Signals to this program are for those who wait for them.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  writer_ = std::thread([this] { WriteAll(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return absl::OkStatus();
}

void RankLogs::Line(int rank, std::string_view line) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({rank, std::string(line)});
    bytes_ += line.size() + kOfALine;
    ++unwritten_[rank];
  }
  came_.notify_one();
}

bool RankLogs::full() {
  const std::lock_guard lock(mutex_);
  asked_ |= bytes_ >= kMostUnwritten;
  return bytes_ >= kMostUnwritten;
}

bool RankLogs::Written(int rank) {
  const std::lock_guard lock(mutex_);
  asked_ |= unwritten_[rank] > 0;
  return unwritten_[rank] == 0;
}

std::vector<RankLogs::Problem> RankLogs::TakeProblems() {
  // Before the lock: what is noted after it makes the descriptor readable again.
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t bytes = read(changed_.get(), &count, sizeof count);
  const std::lock_guard lock(mutex_);
  return std::exchange(problems_, {});
}

void RankLogs::WriteAll() {
  std::unique_lock lock(mutex_);
  for (;;) {
    came_.wait(lock, [this] { return done_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    // Others add lines behind it meanwhile, which leaves it where it is.
    const Waiting& next = waiting_.front();
    LogFile& log = logs_.at(next.rank);
    lock.unlock();
    const bool known = log.lost() > 0;
    log.Write(next.line);
    std::string problem;
    if (!known && log.lost() > 0)
      problem = "what it prints is missing in " + log.path() + " from here on: " + log.problem();
    lock.lock();
    const bool last = --unwritten_[next.rank] == 0, was_full = bytes_ >= kMostUnwritten;
    bytes_ -= next.line.size() + kOfALine;
    const bool changed = !problem.empty() || (asked_ && (last || (was_full && bytes_ < kMostUnwritten)));
    if (!problem.empty()) problems_.push_back({next.rank, std::move(problem)});
    waiting_.pop_front();
    if (waiting_.empty()) asked_ = false;
    if (!changed) continue;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t bytes = write(changed_.get(), &one, sizeof one);
  }
}

}  // namespace planwright
