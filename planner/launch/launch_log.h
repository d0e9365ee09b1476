// The launcher's own log, RUN/logs/launch.log: what it started, what ended and how, which signals it sent, with times.
#pragma once

#include <string>

namespace planwright {

// Once per process. Without it LogEvent says nothing.
void OpenLaunchLog(const std::string& run_dir);

// Flushed at once: the log is for when things end badly.
void LogEvent(const std::string& event);

}  // namespace planwright
