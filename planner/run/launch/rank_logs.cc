#include "planner/run/launch/rank_logs.h"

namespace planwright {

RankLogs::RankLogs(const std::string& run_dir, const std::vector<int>& ranks) {
  for (int rank : ranks) logs_.try_emplace(rank, run_dir + "/logs", RankOutputName(rank));
}

absl::Status RankLogs::Open() {
  for (auto& [rank, log] : logs_) {
    if (absl::Status status = log.Open(); !status.ok()) return status;
  }
  return absl::OkStatus();
}

std::string RankLogs::Line(int rank, std::string_view line) {
  LogFile& log = logs_.at(rank);
  const bool known = log.lost() > 0;
  log.Write(line);
  if (known || log.lost() == 0) return "";
  return "what it prints is missing in " + log.path() + " from here on: " + log.problem();
}

}  // namespace planwright
