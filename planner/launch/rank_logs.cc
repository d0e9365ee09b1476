#include "planner/launch/rank_logs.h"

#include <algorithm>
#include <cstdio>

namespace planwright {

RankLogs::RankLogs(const std::string& run_dir, const std::vector<int>& ranks) {
  for (int rank : ranks) {
    char name[32];
    std::snprintf(name, sizeof name, "/logs/rank%04d.log", rank);
    logs_[rank].open(run_dir + name);
  }
}

bool RankLogs::good() const {
  return std::all_of(logs_.begin(), logs_.end(), [](const auto& log) { return log.second.good(); });
}

void RankLogs::Line(int rank, std::string_view line) {
  logs_.at(rank) << line << std::endl;  // flushed, so that nothing is lost if this program is killed
}

}  // namespace planwright
