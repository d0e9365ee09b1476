// Whether folders and shards fit each other.
#pragma once

#include <string>
#include <vector>

#include "planner/cli/first/folders_and_shards.h"

namespace planwright {

// What is wrong with the folders, before any shard is read: a line for each mistake, for the user.
std::vector<std::string> WrongFolders(const FolderParts& parts);

// The same of shards, of folders in which nothing is wrong.
std::vector<std::string> WrongShards(const FolderParts& parts);

}  // namespace planwright
