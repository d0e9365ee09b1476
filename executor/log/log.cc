#include "executor/log/log.h"

#include <glog/logging.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <ctime>

namespace planwright::executor {
namespace {

// glog's files have names of their own, are never removed, and lose what is still buffered. So its messages go to a
// sink: this one. glog calls `send` for one message at a time, from the thread that logs.
class RankLog : public google::LogSink {
 public:
  RankLog(const std::string& run_dir, int rank, LogFile::Limits limits)
      : file_(run_dir + "/logs", RankLogName(rank), limits), rank_(rank) {}

  absl::Status Open() { return file_.Open(); }

  using google::LogSink::send;
  void send(google::LogSeverity severity, const char*, const char* file, int line, const google::LogMessageTime& time,
            const char* message, size_t length) override {
    char when[32], zone[8], prefix[512];
    std::strftime(when, sizeof when, "%Y%m%d %H:%M:%S", &time.tm());
    std::strftime(zone, sizeof zone, "%z", &time.tm());
    std::snprintf(prefix, sizeof prefix, "%c%s.%06d %s rank%d %d %s:%d] ", "IWEF"[severity], when,
                  static_cast<int>(time.usec()), zone, rank_, static_cast<int>(gettid()), file, line);
    file_.Write(prefix + std::string(message, length));
    Complain();
  }

  void Complain() {
    if (complained_ || file_.problem().empty()) return;
    complained_ = true;
    std::fprintf(stderr, "rank %d cannot write its log %s (%s); the run goes on without what is missing there\n", rank_,
                 file_.path().c_str(), file_.problem().c_str());
  }

 private:
  LogFile file_;
  const int rank_;
  bool complained_ = false;
};

std::atomic<RankLog*> log_of_this_rank{nullptr};  // lives as long as the process

void Log(google::LogSeverity severity, const char* file, int line, const std::string& text) {
  RankLog* log = log_of_this_rank;
  if (log != nullptr) google::LogMessage(file, line, severity, log, /*also_send_to_log=*/false).stream() << text;
}

}  // namespace

absl::Status OpenLog(const std::string& run_dir, int rank, const std::function<absl::Status()>& may_write,
                     LogFile::Limits limits) {
  FLAGS_minloglevel = google::GLOG_INFO;  // GLOG_minloglevel in the environment would hide lines
  auto* log = new RankLog(run_dir, rank, limits);
  if (absl::Status allowed = may_write(); !allowed.ok()) {
    delete log;
    return allowed;
  }
  if (!log->Open().ok()) log->Complain();
  log_of_this_rank = log;
  return absl::OkStatus();
}

void LogInfo(const std::string& text, std::source_location location) {
  Log(google::GLOG_INFO, location.file_name(), static_cast<int>(location.line()), text);
}

void LogWarning(const std::string& text, std::source_location location) {
  Log(google::GLOG_WARNING, location.file_name(), static_cast<int>(location.line()), text);
}

void LogError(const std::string& text, std::source_location location) {
  Log(google::GLOG_ERROR, location.file_name(), static_cast<int>(location.line()), text);
}

void LogWarningFrom(const char* file, int line, const std::string& text) {
  Log(google::GLOG_WARNING, file, line, text);
}

}  // namespace planwright::executor
