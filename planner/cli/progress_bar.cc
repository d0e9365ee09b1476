#include "planner/cli/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "planner/base/text/utf8.h"
#include "planner/views/show/quantities.h"

namespace planwright {
namespace {

constexpr std::chrono::milliseconds kBeforeBar(2000), kBetweenBars(200);  // so that telling costs nothing
constexpr int kBarWidth = 24;

}  // namespace

std::string ProgressText(double done, const std::string& what, double passed) {
  done = std::clamp(done, 0.0, 1.0);
  const int full = static_cast<int>(done * kBarWidth);
  std::string line = absl::StrCat("[", std::string(full, '='), std::string(kBarWidth - full, ' '), "] ",
                                  static_cast<int>(done * 100), "% ", Printable(what));
  if (done > 0) absl::StrAppend(&line, ", ", SecondsText(passed * (1 - done) / done), " left");
  return line;
}

ProgressBar::ProgressBar() : terminal_(isatty(STDERR_FILENO) != 0) {}

void ProgressBar::Hide() {
  if (open_) std::cerr << "\r\x1b[K" << std::flush;
  open_ = false;
}

void ProgressBar::Show(double done, const std::string& what) {
  const Clock::time_point now = Clock::now();
  if (!terminal_ || now - began_ < kBeforeBar || (open_ && now - shown_ < kBetweenBars)) return;
  const std::string line = ProgressText(done, what, std::chrono::duration<double>(now - began_).count());
  std::cerr << "\r\x1b[K" << line << std::flush;
  open_ = true;
  shown_ = now;
}

}  // namespace planwright
