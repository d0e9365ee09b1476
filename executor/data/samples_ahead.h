// Decodes the samples of the next reads on several threads, within a limit of memory
// (docs/training/data.md#reading-ahead). Samples are begun in the order in which reads take them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "executor/data/decoded_sample.h"

namespace planwright::executor {

class SamplesAhead {
 public:
  // The first two are called by one thread at a time, `decode` by several at once. Each may throw: whoever gets a
  // sample that they were called for, or a later one, gets the exception.
  struct Work {
    // What the reads of a step take of each sample, in the order in which they take it. Each sample is of one step, and
    // the numbers of a later step are larger.
    std::function<std::vector<SampleNeed>(int64_t step)> needs;
    std::function<int64_t(const SampleNeed&)> bytes;  // that decoding takes
    std::function<DecodedSample(const SampleNeed&)> decode;
  };

  // At most `most_bytes` are held by samples that are decoded and not yet taken, or being decoded. A sample that
  // somebody waits for is decoded even if it takes more.
  SamplesAhead(int threads, int64_t most_bytes, Work work);
  // Stops, and waits for the samples that are being decoded.
  ~SamplesAhead();
  SamplesAhead(const SamplesAhead&) = delete;
  SamplesAhead& operator=(const SamplesAhead&) = delete;

  // Called once. Decoding begins at once, and is at most in the step after the one that is being read.
  void Begin(int64_t first_step, int64_t last_step);

  // A sample of a step that has begun, once it is there. For one thread, which takes samples in the order of the needs;
  // the reference holds until the last of its reads is done.
  const DecodedSample& Get(int64_t number);
  // A read has taken what it needs of the sample; `encoder`: whose pixels that were, -1: none.
  void Done(int64_t number, int encoder);

  // How many bytes are held now, and how many were at most.
  struct Held {
    int64_t now = 0, most = 0;
  };
  Held held() const;

 private:
  struct Entry {
    int64_t step = 0, bytes = 0;
    SampleNeed need;  // what reads have yet to take
    bool ready = false;
    DecodedSample decoded;
    std::exception_ptr failure;
  };
  struct Queued {
    int64_t step = 0;
    SampleNeed need;
    int64_t bytes = 0;
  };

  void DecodeAll(const std::stop_token& stop);
  bool MayQueue() const;  // the needs of one step more
  bool MayBegin() const;  // the first sample of the queue
  void Queue(std::unique_lock<std::mutex>& lock);
  void DecodeNext(std::unique_lock<std::mutex>& lock);
  void Hold(int64_t bytes);

  const int threads_;
  const int64_t most_bytes_;
  const Work work_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // The rest is guarded by mutex_.
  int64_t next_step_ = 0, last_step_ = -1;  // whose needs are not queued
  bool queueing_ = false;
  std::deque<Queued> queue_;          // not begun
  std::map<int64_t, Entry> entries_;  // begun and not taken, by number
  Held held_;
  int decoding_ = 0;
  bool awaited_ = false;               // somebody waits for the first of the queue
  std::exception_ptr failure_;         // the first one: nothing more is begun
  std::vector<std::jthread> workers_;  // last: they end before the rest goes
};

}  // namespace planwright::executor
