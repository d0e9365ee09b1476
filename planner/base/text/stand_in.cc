#include "planner/base/text/stand_in.h"

#include <algorithm>
#include <cctype>

namespace planwright {

std::string StandInFor(std::string_view begin) {
  if (begin.starts_with("version https://git-lfs"))
    return "a pointer of Git LFS, not the file: `git lfs pull` in its folder fetches it";
  std::string text(begin.substr(std::min(begin.find_first_not_of(" \t\r\n"), begin.size())));
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text.starts_with("<!doctype html") || text.starts_with("<html"))
    return "a page of HTML, not the file: what a server answered in its place; download it again";
  return "";
}

}  // namespace planwright
