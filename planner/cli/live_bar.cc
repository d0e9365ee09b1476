#include "planner/cli/live_bar.h"

#include <signal.h>

#include <chrono>
#include <system_error>
#include <utility>

namespace planwright {

LiveBar::LiveBar(std::function<std::optional<Progress>()> look) : look_(std::move(look)) {
  if (!bar_.on_terminal()) return;
  // Signals are the main thread's.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
  }  // there is no thread left: then there is no bar
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

LiveBar::~LiveBar() {
  {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
  }
  ends_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void LiveBar::Aside(const std::function<void()>& work) {
  const std::scoped_lock lock(mutex_);
  bar_.Hide();
  work();
}

void LiveBar::Run() {
  std::unique_lock lock(mutex_);
  while (!ends_.wait_for(lock, std::chrono::milliseconds(250), [this] { return ended_; })) {
    if (const std::optional<Progress> progress = look_()) bar_.Show(progress->done, progress->what);
  }
}

}  // namespace planwright
