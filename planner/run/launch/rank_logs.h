// RUN/logs/rankNNNN.out: what the ranks of this machine print.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "planner/base/files/log_file.h"

namespace planwright {

class RankLogs {
 public:
  RankLogs(const std::string& run_dir, const std::vector<int>& ranks);
  // Unavailable, with the path, if one of the files cannot be made.
  absl::Status Open();
  // When it is the first line of the rank that cannot be kept, a text that says so; else nothing. The run goes on.
  std::string Line(int rank, std::string_view line);

 private:
  std::map<int, LogFile> logs_;
};

}  // namespace planwright
