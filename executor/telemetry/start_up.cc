#include "executor/telemetry/start_up.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>

namespace planwright::executor {
namespace {

// How long this process has existed; zero if the system does not tell.
StartUp::Clock::duration AgeOfProcess() {
  std::ifstream file("/proc/self/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  // The second field, the program's name in parentheses, may contain anything. The 22nd is the start in ticks since
  // the machine was booted.
  const size_t name_end = stat.rfind(')');
  unsigned long long start = 0;
  if (name_end == std::string::npos ||
      std::sscanf(stat.c_str() + name_end + 1,
                  " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &start) != 1)
    return {};
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  const double age = static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 -
                     static_cast<double>(start) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return std::chrono::duration_cast<StartUp::Clock::duration>(std::chrono::duration<double>(std::max(age, 0.0)));
}

double Seconds(StartUp::Clock::duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

StartUp::StartUp() : parts_{{"program", {}}}, since_(Clock::now() - AgeOfProcess()) {}

void StartUp::Enter(const std::string& part) {
  const auto now = Clock::now();
  parts_[part_].second += now - since_;
  since_ = now;
  const auto known = std::find_if(parts_.begin(), parts_.end(), [&](const auto& known) { return known.first == part; });
  part_ = static_cast<size_t>(known - parts_.begin());
  if (known == parts_.end()) parts_.emplace_back(part, Clock::duration{});
}

std::string StartUp::Line() {
  Enter(parts_[part_].first);
  Clock::duration all{};
  text_.clear();
  for (const auto& [part, time] : parts_) {
    all += time;
    absl::StrAppend(&text_, text_.empty() ? "" : ", ", part, absl::StrFormat(" %.1f", Seconds(time)));
  }
  seconds_ = Seconds(all);
  return absl::StrFormat("ready in %.1f s: ", seconds_) + text_;
}

}  // namespace planwright::executor
