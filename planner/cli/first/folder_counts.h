// What an index has counted of the data that a first recipe names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/data/samples/sample_origin.h"
#include "planner/recipe/recipe.h"

namespace planwright {

struct FolderCounts {
  int64_t sequence = 0;  // tokens of a sample; 0: there is no index, or it is of other shards, and nothing is known
  // Of the sources of the training, and of those of the first evaluation set, in their order. The latter may be
  // unknown.
  std::vector<SourceCounts> data, evaluation;
  std::string index;    // the folder of the index, where there may be one; empty: unknown
  std::string problem;  // why plans will not know the counts; empty: they will
};

// From the index in the folder that the recipe names, without reading shards. Keeps what it counts for plans
// (KeepCounted). `recipe`: of data of kind sources.
FolderCounts CountsAtHand(const Recipe& recipe);

}  // namespace planwright
