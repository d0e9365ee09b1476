// Images that lie in files outside of shards, which name them by path. One that is not there is not damaged: a folder
// was renamed or removed, or is not on this machine. So it is told as that, also with `damaged: skip`, and nothing is
// put in its place (docs/training/data.md#images-outside-of-shards).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/data/samples/index_file.h"

namespace planwright {

// Where there are more such images than this, so many of them are looked for, evenly spread: for each the file system
// is asked once.
inline constexpr int64_t kMostImagesLookedFor = 4096;

// A path without its detours, for messages: /data/photos/a.png for /data/shards/../photos/a.png, if both lead to one
// place. A folder on the way that is a link may make them two; then it is the path as it is.
std::string PlainPath(const std::string& path);

struct OutsideImages {
  int64_t named = 0;               // that shards name
  int64_t looked = 0;              // for so many of them it was looked
  int64_t missing = 0;             // and so many of these are not there
  std::vector<std::string> first;  // paths of the first of them

  // One that is not there, at `path`.
  void AddMissing(const std::string& path);
  void Add(const OutsideImages& more);
};

// Looks for the images of these slices that are files of their own, with up to `threads` threads. Paths in an index are
// relative to `base`, or absolute.
OutsideImages LookForImages(const std::vector<ShardSlice>& slices, const std::string& base, int threads);

// What is told of images of a source that are not there.
struct MissingImages {
  std::string what;                // "source NAME: 3 of 9 images ...", in one line
  std::vector<std::string> paths;  // the first ones, and how many there are beside them
  std::string help;

  // All of it for a terminal.
  std::vector<std::string> Lines() const;
};

// Nothing if none is missing.
std::optional<MissingImages> MissingOf(std::string_view source, const OutsideImages& images);

// Behind the message that an image is not there when a run reads it.
inline constexpr const char* kImageIsGone =
    "; bring it back to this path and launch again: `plan data index --anew` says which others are not there";

}  // namespace planwright
