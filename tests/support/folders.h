// Where this clone and its build are. Only folders.cc knows: the objects of all other tests are the same in every
// clone, so that a second clone finds them in ccache.
#pragma once

#include <string>

namespace planwright {

// `path` inside the clone: InSource("recipes/icons_2g.yaml"). Without one: the clone.
std::string InSource(const std::string& path = "");

// `path` inside the build folder: InBuild("bin/plan"). Without one: the build folder.
std::string InBuild(const std::string& path = "");

}  // namespace planwright
