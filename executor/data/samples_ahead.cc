#include "executor/data/samples_ahead.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "planner/base/threads/threads.h"

namespace planwright::executor {

SamplesAhead::SamplesAhead(int threads, int64_t most_bytes, Work work)
    : threads_(std::max(1, threads)), most_bytes_(most_bytes), work_(std::move(work)) {}

SamplesAhead::~SamplesAhead() {
  for (std::jthread& worker : workers_) worker.request_stop();
  workers_.clear();
}

void SamplesAhead::Begin(int64_t first_step, int64_t last_step) {
  TORCH_CHECK(workers_.empty(), "samples are being decoded already");
  {
    const std::lock_guard lock(mutex_);
    next_step_ = first_step, last_step_ = last_step;
  }
  for (int i = 0; i < threads_; ++i) workers_.emplace_back([this](const std::stop_token& stop) { DecodeAll(stop); });
}

// Numbers ascend with steps, so the first entry is of the step that is being read.
bool SamplesAhead::MayQueue() const {
  if (queueing_ || !queue_.empty() || next_step_ > last_step_) return false;
  return entries_.empty() || next_step_ <= entries_.begin()->second.step + 1;
}

bool SamplesAhead::MayBegin() const {
  return !queue_.empty() && (awaited_ || held_.now == 0 || held_.now + queue_.front().bytes <= most_bytes_);
}

void SamplesAhead::Hold(int64_t bytes) {
  held_.now += bytes;
  held_.most = std::max(held_.most, held_.now);
}

void SamplesAhead::DecodeAll(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto at_the_end = [this] { return queue_.empty() && !queueing_ && next_step_ > last_step_; };
    changed_.wait(lock, stop, [&] { return failure_ || at_the_end() || MayQueue() || MayBegin(); });
    if (stop.stop_requested() || failure_ || at_the_end()) return;
    MayQueue() ? Queue(lock) : DecodeNext(lock);
    changed_.notify_all();
  }
}

void SamplesAhead::Queue(std::unique_lock<std::mutex>& lock) {
  const int64_t step = next_step_++;
  queueing_ = true;
  lock.unlock();
  std::deque<Queued> queue;
  std::exception_ptr failure;
  try {
    for (SampleNeed& need : work_.needs(step)) {
      const int64_t bytes = work_.bytes(need);
      queue.push_back({step, std::move(need), bytes});
    }
  } catch (const std::exception&) {  // anything else ends the process
    failure = std::current_exception();
  }
  lock.lock();
  queueing_ = false;
  if (failure) {
    failure_ = failure;
  } else {
    queue_ = std::move(queue);
  }
}

void SamplesAhead::DecodeNext(std::unique_lock<std::mutex>& lock) {
  Queued next = std::move(queue_.front());
  queue_.pop_front();
  awaited_ = false;
  const int64_t number = next.need.number;
  const auto [at, fresh] = entries_.try_emplace(number);
  TORCH_INTERNAL_ASSERT(fresh, "sample ", number, " is read twice");
  Entry& entry = at->second;  // stays where it is, and only this thread touches it until it is ready
  entry.step = next.step, entry.bytes = next.bytes, entry.need = next.need;
  Hold(next.bytes);
  ++decoding_;
  // Threads that have no sample of their own help with this one.
  const ThreadLimit limit(std::max(1, threads_ / decoding_));
  lock.unlock();
  DecodedSample decoded;
  std::exception_ptr failure;
  try {
    decoded = work_.decode(next.need);
  } catch (const std::exception&) {
    failure = std::current_exception();
  }
  const int64_t bytes = decoded.bytes();
  lock.lock();
  --decoding_;
  entry.decoded = std::move(decoded);
  entry.failure = failure;
  entry.ready = true;
  Hold(bytes - std::exchange(entry.bytes, bytes));
  // Only an earlier one may still be needed, and those are being decoded already.
  if (failure && !failure_) failure_ = failure;
}

const DecodedSample& SamplesAhead::Get(int64_t number) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = entries_.find(number);
    if (found != entries_.end() && found->second.ready) {
      if (found->second.failure) std::rethrow_exception(found->second.failure);
      return found->second.decoded;
    }
    if (found == entries_.end()) {
      if (failure_) std::rethrow_exception(failure_);
      TORCH_CHECK(!queue_.empty() || queueing_ || next_step_ <= last_step_, "sample ", number, " is not read ahead");
      awaited_ = true;
      changed_.notify_all();
    }
    changed_.wait(lock);
  }
}

void SamplesAhead::Done(int64_t number, int encoder) {
  {
    const std::lock_guard lock(mutex_);
    const auto at = entries_.find(number);
    TORCH_CHECK(at != entries_.end(), "sample ", number, " has no read left");
    Entry& entry = at->second;
    if (encoder >= 0 && --entry.need.pixels[encoder].reads == 0) entry.decoded.DropPixels(encoder);
    const bool last = --entry.need.reads == 0;
    const int64_t bytes = last ? 0 : entry.decoded.bytes();
    Hold(bytes - std::exchange(entry.bytes, bytes));
    if (last) entries_.erase(at);
  }
  changed_.notify_all();
}

SamplesAhead::Held SamplesAhead::held() const {
  const std::lock_guard lock(mutex_);
  return held_;
}

}  // namespace planwright::executor
