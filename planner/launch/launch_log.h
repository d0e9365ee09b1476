// The launcher's own log, RUN/logs/launch.log: which processes it started, how each ended, and which signals it sent,
// with times.
#pragma once

#include <string>

namespace planwright {

// Call it once per process. Before it, LogEvent does nothing.
void OpenLaunchLog(const std::string& run_dir);

// Writes one line and flushes it, so that the log is complete if the launcher is killed.
void LogEvent(const std::string& event);

}  // namespace planwright
