// The log of a rank, RUN/logs/rank0003.log, for what people want to know of a run that is over: what the rank was,
// which checkpoints it wrote, what it waited for, why it failed (docs/logs.md). Steps are in metrics.jsonl. glog does
// the work; it is hidden in log.cc, since its macros have the names of LibTorch's.
#pragma once

#include <absl/status/status.h>

#include <functional>
#include <source_location>
#include <string>

#include "planner/base/files/log_file.h"

namespace planwright::executor {

// Call it once, before other threads log; lines before it are dropped. `may_write` is asked when the folder is open,
// and its error is returned: a rank whose life was replaced must not write beside the newer one. A log that cannot be
// written is no error: that is said once on stderr, and the run goes on.
absl::Status OpenLog(const std::string& run_dir, int rank, const std::function<absl::Status()>& may_write,
                     LogFile::Limits limits = {});

// Add a line, or several: the text may have line breaks, and glog cuts it after 30,000 bytes. It is in the file on
// return, whatever happens to the process then. May be called from any thread, but not from a signal handler.
void LogInfo(const std::string& text, std::source_location location = std::source_location::current());
void LogWarning(const std::string& text, std::source_location location = std::source_location::current());
void LogError(const std::string& text, std::source_location location = std::source_location::current());
// For what libraries report, with their own source locations.
void LogWarningFrom(const char* file, int line, const std::string& text);

}  // namespace planwright::executor
