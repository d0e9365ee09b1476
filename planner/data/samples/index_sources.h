// The shards of the webdataset sources of a plan: which there are; and whether what the prepared.json of all sources
// say agrees with the plan and with each other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/data/samples/index_shard.h"
#include "planner/data/samples/prepared.h"
#include "planner/plan/plan.h"

namespace planwright {

struct SourceShards {
  std::vector<NamedFile> files;                        // in their order
  std::vector<std::optional<PreparedShard>> prepared;  // of each file; nullopt: nothing is said of it
  std::vector<std::string> notes;                      // IndexedSource::notes
};

// For each of data.sources, by number; empty where the kind is not webdataset. What is wrong is added to `problems`, a
// sentence each.
std::vector<SourceShards> FindSourceShards(const DataPlan& data, std::vector<std::string>& problems);

}  // namespace planwright
