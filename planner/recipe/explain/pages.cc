#include "planner/recipe/explain/pages.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

// Lower case, `-` for spaces, and of other signs only `_` and `-` stay.
std::string AnchorOf(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    if (c == ' ')
      anchor += '-';
    else if (absl::ascii_isalnum(c) || c == '_' || c == '-')
      anchor += absl::ascii_tolower(c);
  }
  return anchor;
}

}  // namespace

std::vector<PageSection> PageSections(std::string_view headings) {
  std::vector<PageSection> sections;
  std::string page, title;
  for (const std::string& line :
       std::vector<std::string>(absl::StrSplit(std::string(headings), '\n', absl::SkipEmpty()))) {
    if (line.starts_with("# ")) {
      title = line.substr(2);
      sections.push_back({page, title});
    } else if (line.starts_with("## ")) {
      const std::string heading = absl::StrReplaceAll(line.substr(3), {{"`", ""}});
      sections.push_back({Cat(page, "#", AnchorOf(heading)), Cat(heading, " (", title, ")")});
    } else {
      page = absl::StrReplaceAll(line, {{"/./", "/"}});
    }
  }
  return sections;
}

}  // namespace planwright
