// The launcher's own log, RUN/logs/launch.log: which processes it started, how each ended, and which signals it sent,
// with times.
#pragma once

#include <string>

namespace planwright {

// Events go to this file until the next call. Before the first one, LogEvent does nothing.
void OpenLaunchLog(const std::string& run_dir);

// Writes one line and flushes it, so that the log is complete if the launcher is killed.
void LogEvent(const std::string& event);

}  // namespace planwright
