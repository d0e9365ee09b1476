// The pages of docs by their headings, so that a search says where to read.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// Lines: the path of a page, then its headings, as Markdown has them.
std::string_view PageHeadings();

struct PageSection {
  std::string place;  // "docs/checkpoints.md#before-a-resume", as GitHub names the anchor
  std::string title;  // "Before a resume (Checkpoints)"; of the page itself its title
};
std::vector<PageSection> PageSections(std::string_view headings);

}  // namespace planwright
