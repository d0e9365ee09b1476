#include "executor/data/read_ahead.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <set>
#include <utility>

namespace planwright::executor {
namespace {

constexpr size_t kMicrobatchesAhead = 2;  // one that waits for training, and one that is being read

}  // namespace

ReadAhead::~ReadAhead() {
  Stop();
  if (thread_.joinable()) thread_.join();
}

void ReadAhead::Begin(std::vector<DataRead> reads, int64_t first_step, int64_t last_step) {
  TORCH_CHECK(!thread_.joinable(), "samples are being read ahead already");
  reads_ = std::move(reads), first_step_ = first_step, last_step_ = last_step;
  std::set<int> microbatches;
  for (size_t i = 0; i < reads_.size(); ++i) {
    microbatches.insert(reads_[i].call.microbatch);
    TORCH_CHECK(IndexOf(*reads_[i].instruction, reads_[i].call) == static_cast<int64_t>(i),
                "a step has one read twice");
  }
  const size_t in_each = microbatches.empty() ? 0 : (reads_.size() + microbatches.size() - 1) / microbatches.size();
  most_ahead_ = kMicrobatchesAhead * in_each;
  if (!reads_.empty()) thread_ = std::jthread([this](const std::stop_token& stop) { ReadAll(stop); });
}

std::chrono::nanoseconds ReadAhead::MonotonicTime() { return std::chrono::steady_clock::now().time_since_epoch(); }

void ReadAhead::Stop() { thread_.request_stop(); }

void ReadAhead::ReadAll(const std::stop_token& stop) {
  int64_t number = 0;
  for (int64_t step = first_step_; step <= last_step_; ++step) {
    for (const DataRead& read : reads_) {
      {
        std::unique_lock lock(mutex_);
        // `wait` alone would read on after a stop, until nothing more may be ahead.
        changed_.wait(lock, stop, [&] { return ahead_.size() < most_ahead_; });
        if (stop.stop_requested()) return;
      }
      Done done;
      CallContext call = read.call;
      call.step = step;
      try {
        done.values = read_(*read.instruction, call);
      } catch (const std::exception&) {  // anything else ends the process
        done.failure = std::current_exception();
      }
      const bool failed = done.failure != nullptr;
      {
        const std::lock_guard lock(mutex_);
        ahead_.push_back({number++, std::move(done)});
      }
      changed_.notify_all();
      if (failed) return;  // whoever takes it ends the run
    }
  }
}

int64_t ReadAhead::IndexOf(const Instruction& instruction, const CallContext& call) const {
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (reads_[i].instruction == &instruction && reads_[i].call.microbatch == call.microbatch &&
        reads_[i].call.module == call.module)
      return static_cast<int64_t>(i);
  }
  TORCH_CHECK(false, OpName(instruction.kind), " of microbatch ", call.microbatch, " is no read of a step");
}

Tensors ReadAhead::Take(const Instruction& instruction, const CallContext& call) {
  TORCH_CHECK(call.step >= first_step_ && call.step <= last_step_, "step ", call.step, " is not read ahead");
  const int64_t number = (call.step - first_step_) * static_cast<int64_t>(reads_.size()) + IndexOf(instruction, call);
  Done done;
  {
    std::unique_lock lock(mutex_);
    const auto mine = [&] {
      return std::find_if(ahead_.begin(), ahead_.end(), [&](const Ahead& read) { return read.number == number; });
    };
    if (mine() == ahead_.end()) {
      const std::chrono::nanoseconds began = clock_();
      changed_.wait(lock, [&] { return mine() != ahead_.end(); });
      waited_[call.step] += clock_() - began;
    }
    const auto found = mine();
    done = std::move(found->done);
    ahead_.erase(found);
  }
  changed_.notify_all();
  if (done.failure) std::rethrow_exception(done.failure);
  return std::move(done.values);
}

size_t ReadAhead::ready() const {
  const std::lock_guard lock(mutex_);
  return ahead_.size();
}

std::chrono::nanoseconds ReadAhead::WaitedIn(int64_t step) {
  const std::lock_guard lock(mutex_);
  const auto found = waited_.find(step);
  const std::chrono::nanoseconds waited = found == waited_.end() ? std::chrono::nanoseconds(0) : found->second;
  waited_.erase(waited_.begin(), waited_.upper_bound(step));  // earlier ones were not asked for
  ++waits_.steps;
  waits_.all += waited;
  if (waited > waits_.worst) waits_.worst = waited, waits_.worst_step = step;
  return waited;
}

ReadAhead::Waits ReadAhead::waits() const {
  const std::lock_guard lock(mutex_);
  return waits_;
}

}  // namespace planwright::executor
