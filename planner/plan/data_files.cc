#include "planner/plan/data_files.h"

namespace planwright {

std::vector<std::string> FilesOfData(const DataPlan& data) {
  std::vector<std::string> files;
  if (!data.path.empty()) files.push_back(data.path);
  for (const SourcePlan& source : data.sources) {
    files.insert(files.end(), source.shards.begin(), source.shards.end());
    if (!source.path.empty()) files.push_back(source.path);
  }
  return files;
}

}  // namespace planwright
