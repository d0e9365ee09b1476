#include "planner/launch/launch_log.h"

#include <cstdio>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace planwright {
namespace {

std::FILE* log_file = nullptr;  // of the newest life, open until the next one or the end of the process

}  // namespace

void OpenLaunchLog(const std::string& run_dir) {
  if (log_file) std::fclose(log_file);
  log_file = std::fopen((run_dir + "/logs/launch.log").c_str(), "ae");  // e: the ranks do not inherit it
}

void LogEvent(const std::string& event) {
  if (!log_file) return;
  const std::string time = absl::FormatTime("%Y-%m-%d %H:%M:%E6S %Ez", absl::Now(), absl::LocalTimeZone());
  std::fprintf(log_file, "%s  %s\n", time.c_str(), event.c_str());
  std::fflush(log_file);
}

}  // namespace planwright
