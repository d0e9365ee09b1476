// RUN/logs/rankNNNN.log: what the ranks of this machine print.
#pragma once

#include <fstream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planwright {

class RankLogs {
 public:
  RankLogs(const std::string& run_dir, const std::vector<int>& ranks);
  bool good() const;
  void Line(int rank, std::string_view line);

 private:
  std::map<int, std::ofstream> logs_;
};

}  // namespace planwright
