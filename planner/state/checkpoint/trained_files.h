// Whether the files of samples have the documents on which a run was trained (docs/training/data.md#changing-sources).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "planner/state/checkpoint/format.h"

namespace planwright {

// Digests of the documents of each source, by its name, as Manifest::data has them.
using SourceDigests = std::map<std::string, std::string>;

// The sources that both have, and whose digests differ.
std::vector<std::string> OtherFiles(const SourceDigests& before, const SourceDigests& now);

// What differs between the files now and those on which the checkpoint was trained, and from which sample on, in lines.
// Empty: nothing, or the checkpoint says nothing of files (of earlier versions, or of data of other kinds).
std::vector<std::string> OtherFilesLines(const Manifest& checkpoint, const SourceDigests& now);

// One digest of all of them, 64 hex digits; empty: there are none.
std::string DigestOfAll(const SourceDigests& digests);

}  // namespace planwright
