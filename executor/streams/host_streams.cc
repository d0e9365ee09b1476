// Streams on a CPU: a queue and a thread for each.
#include <ATen/Parallel.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "executor/streams/streams.h"

namespace planwright::executor {
namespace {

// An instruction on its way to its thread.
struct QueuedInstruction {
  int64_t number = 0;          // -1: the thread shall end
  std::vector<int64_t> waits;  // as in StreamLaunch
  int64_t communication = -1;  // its number among the communications; -1: it is none
  std::function<void()> work;
};

// Which instructions are done, shared by all threads.
class StreamProgress {
 public:
  explicit StreamProgress(int streams) : open_(static_cast<size_t>(streams)) {}

  void Give(int stream, int64_t number) {
    const std::lock_guard lock(mutex_);
    open_[static_cast<size_t>(stream)].push_back(number);
    given_ = number + 1;
  }

  // An instruction may start when those that it waits for are done and, if it communicates, when all earlier
  // communications have started. Without the second rule two ranks could start the same two communications in different
  // orders, and each would wait for the other.
  void WaitToStart(const QueuedInstruction& instruction) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      // A stream works in order: its oldest open instruction tells how far it is.
      for (size_t stream = 0; stream < instruction.waits.size(); ++stream) {
        if (!open_[stream].empty() && open_[stream].front() <= instruction.waits[stream]) return false;
      }
      return instruction.communication < 0 || started_ == instruction.communication;
    });
    if (instruction.communication < 0) return;
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
  std::vector<std::deque<int64_t>> open_;  // by stream: instructions given and not done, oldest first
  int64_t given_ = 0;                      // instructions given
  int64_t started_ = 0;                    // communications started
};

// Tells the recorder how far the threads are.
class HostCompletion : public Completion {
 public:
  HostCompletion(std::shared_ptr<StreamProgress> progress, uint64_t before)
      : progress_(std::move(progress)), before_(before) {}
  std::chrono::nanoseconds Mark(uint64_t) override { return {}; }
  uint64_t Finished() override { return before_ + static_cast<uint64_t>(progress_->DoneInOrder()); }

 private:
  const std::shared_ptr<StreamProgress> progress_;
  // Instructions that the recorder counted before the first one given here: the two number differently.
  const uint64_t before_;
};

// One stream except the main one: its queue and its thread.
class StreamThread {
 public:
  StreamThread(int stream, StreamProgress& progress, const BeforeInstruction& before_instruction,
               const std::function<void(const std::exception&)>& fail)
      : stream_(stream), progress_(progress), before_instruction_(before_instruction), fail_(fail),
        thread_([this] { Work(); }) {}
  ~StreamThread() {
    Push({.number = -1});
    thread_.join();
  }

  void Push(QueuedInstruction instruction) {
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(std::move(instruction));
    }
    changed_.notify_one();
  }

 private:
  void Work() {
    at::set_num_threads(1);  // LibTorch keeps this setting for each thread by itself
    for (QueuedInstruction instruction = Pop(); instruction.number >= 0; instruction = Pop()) {
      try {
        if (before_instruction_) before_instruction_();
        progress_.WaitToStart(instruction);
        instruction.work();
      } catch (const std::exception& error) {
        fail_(error);
      }
      // Its values are released before it counts as done: those who wait for it may reuse their memory.
      instruction.work = nullptr;
      progress_.Done(stream_);
    }
  }

  QueuedInstruction Pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty(); });
    QueuedInstruction instruction = std::move(queue_.front());
    queue_.pop_front();
    return instruction;
  }

  const int stream_;
  StreamProgress& progress_;
  const BeforeInstruction& before_instruction_;
  const std::function<void(const std::exception&)>& fail_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<QueuedInstruction> queue_;
  std::thread thread_;  // the last member: it uses the others
};

class HostStreams : public Streams {
 public:
  HostStreams(int streams, Recorder& recorder, std::function<void(const std::exception&)> fail,
              BeforeInstruction before_instruction)
      : fail_(std::move(fail)), before_instruction_(std::move(before_instruction)),
        progress_(std::make_shared<StreamProgress>(streams)) {
    recorder.Follow(std::make_unique<HostCompletion>(progress_, recorder.begun()));
    for (int stream = 1; stream < streams; ++stream) {
      threads_.push_back(std::make_unique<StreamThread>(stream, *progress_, before_instruction_, fail_));
    }
  }

  bool runs_on_caller(int stream) const override { return stream == 0; }

  void Run(const StreamLaunch& launch, const std::function<void()>& work) override {
    QueuedInstruction instruction{
        .number = number_++, .waits = launch.waits, .communication = launch.communicates ? communications_++ : -1};
    progress_->Give(launch.stream, instruction.number);
    if (launch.stream > 0) {
      instruction.work = work;
      return threads_[static_cast<size_t>(launch.stream) - 1]->Push(std::move(instruction));
    }
    if (before_instruction_) before_instruction_();
    progress_->WaitToStart(instruction);
    work();
    progress_->Done(0);
  }

  void Join() override { progress_->WaitForAll(); }

 private:
  const std::function<void(const std::exception&)> fail_;
  const BeforeInstruction before_instruction_;
  const std::shared_ptr<StreamProgress> progress_;  // shared with the recorder, which may outlive this
  int64_t number_ = 0, communications_ = 0;
  std::vector<std::unique_ptr<StreamThread>> threads_;
};

}  // namespace

std::unique_ptr<Streams> MakeHostStreams(int streams, Recorder& recorder,
                                         std::function<void(const std::exception&)> fail,
                                         BeforeInstruction before_instruction) {
  return std::make_unique<HostStreams>(streams, recorder, std::move(fail), std::move(before_instruction));
}

}  // namespace planwright::executor
