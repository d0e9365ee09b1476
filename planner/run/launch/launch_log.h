// The launcher's own log, RUN/logs/launch.log: which processes it started, how each ended, and which signals it sent,
// with times.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace planwright {

// Events go to this file until the next call. Before the first one, LogEvent does nothing.
void OpenLaunchLog(const std::string& run_dir);

// Writes one line and flushes it, so that the log is complete if the launcher is killed.
void LogEvent(const std::string& event);

// When a line of the log was written; nullopt if it does not begin with a time.
std::optional<absl::Time> EventTime(std::string_view line);

}  // namespace planwright
