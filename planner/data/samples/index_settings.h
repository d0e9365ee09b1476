// What an index depends on, of the plan: where it is, and the settings that its header names.
#pragma once

#include <string>
#include <vector>

#include "planner/data/samples/index_format.h"
#include "planner/data/samples/index_shard.h"
#include "planner/plan/plan.h"

namespace planwright {

// The folder of a run's index files; the index of a source, and where the parts of one of kind webdataset are until it
// is whole. Names have a digest of what the recipe says of the source, so several recipes can share a folder.
std::string IndexFolder(const DataPlan& data);
std::string IndexPath(const DataPlan& data, const SourcePlan& source);
// Index files there of sources of this name that other recipes made, or this one before it was changed, newest first.
std::vector<std::string> OtherIndexPaths(const DataPlan& data, const SourcePlan& source);
std::string IndexPartsFolder(const DataPlan& data, const SourcePlan& source);
// The list of documents that were left out, for people.
std::string LeftOutPath(const DataPlan& data, const SourcePlan& source);

ReadingSettings ReadingOf(const DataPlan& data, const SourcePlan& source);

// Of the settings above, of the shards as the recipe names them, and of the digests that it pins.
DigestBytes SourceDigest(const DataPlan& data, const SourcePlan& source);

}  // namespace planwright
