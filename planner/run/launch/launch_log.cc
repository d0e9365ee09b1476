#include "planner/run/launch/launch_log.h"

#include <fcntl.h>

#include <cstdio>

#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "planner/base/files/file_io.h"

namespace planwright {
namespace {

constexpr char kTimeFormat[] = "%Y-%m-%d %H:%M:%E6S %Ez";
constexpr std::string_view kGap = "  ";  // between the time and the event

std::FILE* log_file = nullptr;  // of the newest life, open until the next one or the end of the process

}  // namespace

void OpenLaunchLog(const std::string& run_dir) {
  if (log_file) std::fclose(log_file);
  // A pipe in its place would make the launch wait. Without its log the run goes on.
  const absl::StatusOr<int> file = OpenPlainFile(run_dir + "/logs/launch.log", O_WRONLY | O_APPEND | O_CREAT);
  log_file = file.ok() ? fdopen(*file, "a") : nullptr;
}

void LogEvent(const std::string& event) {
  if (!log_file) return;
  const std::string time = absl::FormatTime(kTimeFormat, absl::Now(), absl::LocalTimeZone());
  std::fprintf(log_file, "%s%s%s\n", time.c_str(), kGap.data(), event.c_str());
  std::fflush(log_file);
}

std::optional<absl::Time> EventTime(std::string_view line) {
  const std::string_view text = line.substr(0, line.find(kGap));
  absl::Time time;
  if (!absl::ParseTime(kTimeFormat, std::string(text), &time, nullptr)) return std::nullopt;
  return time;
}

}  // namespace planwright
