#include <ATen/Parallel.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "executor/streams/streams.h"

namespace planwright::executor {
namespace {

// What is known of an instruction once it is handed over.
struct Given {
  int64_t number = 0;
  std::vector<int64_t> waits;
  int64_t communication = -1;  // its place among those that communicate; -1: it does not
  std::function<void()> work;
};

// What threads tell each other.
class Progress {
 public:
  explicit Progress(int streams) : open_(static_cast<size_t>(streams)) {}

  void Give(int stream, int64_t number) {
    const std::lock_guard lock(mutex_);
    open_[static_cast<size_t>(stream)].push_back(number);
    given_ = number + 1;
  }

  // An instruction may start when those that it waits for are done and, if it communicates, all earlier ones that do
  // have started.
  void WaitToStart(const Given& given) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      for (size_t stream = 0; stream < given.waits.size(); ++stream) {
        if (!open_[stream].empty() && open_[stream].front() <= given.waits[stream]) return false;
      }
      return given.communication < 0 || started_ == given.communication;
    });
    if (given.communication < 0) return;
    ++started_;
    lock.unlock();
    changed_.notify_all();
  }

  void Done(int stream) {
    {
      const std::lock_guard lock(mutex_);
      open_[static_cast<size_t>(stream)].pop_front();
    }
    changed_.notify_all();
  }

  void WaitForAll() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return FirstOpen() == given_; });
  }

  // How many instructions from the first on are done without a gap.
  int64_t DoneInOrder() {
    const std::lock_guard lock(mutex_);
    return FirstOpen();
  }

 private:
  int64_t FirstOpen() const {
    int64_t first = given_;
    for (const std::deque<int64_t>& open : open_) first = open.empty() ? first : std::min(first, open.front());
    return first;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::deque<int64_t>> open_;  // by stream: given and not done
  int64_t given_ = 0, started_ = 0;
};

class HostCompletion : public Completion {
 public:
  HostCompletion(std::shared_ptr<Progress> progress, uint64_t before)
      : progress_(std::move(progress)), before_(before) {}
  void Mark(uint64_t) override {}
  uint64_t Finished() override { return before_ + static_cast<uint64_t>(progress_->DoneInOrder()); }

 private:
  const std::shared_ptr<Progress> progress_;
  const uint64_t before_;  // the recorder's number of the last instruction that was not given to streams
};

// A stream of its own.
class StreamThread {
 public:
  StreamThread(int stream, Progress& progress, const BeforeEach& before_each,
               const std::function<void(const std::exception&)>& fail)
      : stream_(stream), progress_(progress), before_each_(before_each), fail_(fail), thread_([this] { Work(); }) {}
  ~StreamThread() {
    Push({.number = -1});
    thread_.join();
  }

  void Push(Given given) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(given));
    }
    changed_.notify_one();
  }

 private:
  void Work() {
    at::set_num_threads(1);  // each thread has a number of its own
    for (Given given = Pop(); given.number >= 0; given = Pop()) {
      try {
        if (before_each_) before_each_();
        progress_.WaitToStart(given);
        given.work();
      } catch (const std::exception& error) {
        fail_(error);
      }
      given.work = nullptr;  // what it held is let go before it counts as done
      progress_.Done(stream_);
    }
  }

  Given Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty(); });
    Given given = std::move(queue_.front());
    queue_.pop_front();
    return given;
  }

  const int stream_;
  Progress& progress_;
  const BeforeEach& before_each_;
  const std::function<void(const std::exception&)>& fail_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Given> queue_;
  std::thread thread_;  // the last member: it reads the others
};

class HostStreams : public Streams {
 public:
  HostStreams(int streams, Recorder& recorder, std::function<void(const std::exception&)> fail, BeforeEach before_each)
      : fail_(std::move(fail)), before_each_(std::move(before_each)), progress_(std::make_shared<Progress>(streams)) {
    recorder.Follow(std::make_unique<HostCompletion>(progress_, recorder.begun()));
    for (int stream = 1; stream < streams; ++stream) {
      threads_.push_back(std::make_unique<StreamThread>(stream, *progress_, before_each_, fail_));
    }
  }

  bool here(int stream) const override { return stream == 0; }

  void Run(const StreamPlace& place, const std::function<void()>& work) override {
    Given given{
        .number = number_++, .waits = place.waits, .communication = place.communicates ? communications_++ : -1};
    progress_->Give(place.stream, given.number);
    if (place.stream > 0) {
      given.work = work;
      return threads_[static_cast<size_t>(place.stream) - 1]->Push(std::move(given));
    }
    if (before_each_) before_each_();
    progress_->WaitToStart(given);
    work();
    progress_->Done(0);
  }

  void Join() override { progress_->WaitForAll(); }

 private:
  const std::function<void(const std::exception&)> fail_;
  const BeforeEach before_each_;
  const std::shared_ptr<Progress> progress_;  // the recorder's, too
  int64_t number_ = 0, communications_ = 0;
  std::vector<std::unique_ptr<StreamThread>> threads_;
};

}  // namespace

std::unique_ptr<Streams> MakeHostStreams(int streams, Recorder& recorder,
                                         std::function<void(const std::exception&)> fail, BeforeEach before_each) {
  return std::make_unique<HostStreams>(streams, recorder, std::move(fail), std::move(before_each));
}

}  // namespace planwright::executor
