// A bar of work that is done elsewhere: by ranks, which tell nothing while they go on. A thread looks how far they are.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "planner/cli/progress_bar.h"

namespace planwright {

class LiveBar {
 public:
  struct Progress {
    double done = 0;   // the part of the work, 0 to 1
    std::string what;  // as that of ProgressText
  };
  // `look`: how far the work is; none: nobody knows yet. Without a terminal on stderr nobody looks.
  explicit LiveBar(std::function<std::optional<Progress>()> look);
  LiveBar(const LiveBar&) = delete;
  LiveBar& operator=(const LiveBar&) = delete;
  ~LiveBar();  // takes the bar away

  // Does this while there is no bar and nobody looks: prints lines, changes what `look` reads.
  void Aside(const std::function<void()>& work);

 private:
  void Run();

  const std::function<std::optional<Progress>()> look_;
  std::mutex mutex_;
  std::condition_variable ends_;
  bool ended_ = false;
  ProgressBar bar_;
  std::thread thread_;  // none without a terminal
};

}  // namespace planwright
