#include "planner/recipe/explain/glossary.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

constexpr size_t kNone = std::string::npos;

// The texts in bold. "**follows, chosen, free**" has three names.
std::vector<std::string> BoldNames(const std::string& paragraph) {
  std::vector<std::string> names;
  for (size_t at = paragraph.find("**"); at != kNone; at = paragraph.find("**", at)) {
    const size_t begin = at + 2, end = paragraph.find("**", begin);
    if (end == kNone) break;
    for (const std::string& name :
         std::vector<std::string>(absl::StrSplit(paragraph.substr(begin, end - begin), absl::ByString(", "))))
      names.push_back(absl::AsciiStrToLower(name));
    at = end + 2;
  }
  return names;
}

// "training/data.md#index" -> "docs/training/data.md#index"; "#lane" is of the glossary itself.
std::string PageOf(const std::string& link) { return link[0] == '#' ? "docs/glossary.md" + link : "docs/" + link; }

// Takes [text](link) and marks of emphasis away. Code in backticks stays as it is.
void TakeMarks(const std::string& paragraph, Term& term) {
  bool code = false;
  for (size_t at = 0; at < paragraph.size(); ++at) {
    const char c = paragraph[at];
    if (c == '`') code = !code;
    if (code || (c != '[' && c != '*')) {
      term.text += c;
      continue;
    }
    const size_t middle = c == '[' ? paragraph.find("](", at) : kNone;
    const size_t end = middle == kNone ? kNone : paragraph.find(')', middle);
    if (end == kNone) {
      if (c == '[') term.text += c;  // a bracket of the text, such as [4,5]
      continue;
    }
    const std::string link = paragraph.substr(middle + 2, end - middle - 2);
    if (paragraph.find(']', at) != middle) {  // a bracket of the text before a link
      term.text += c;
      continue;
    }
    term.text += paragraph.substr(at + 1, middle - at - 1);
    const std::string page = PageOf(link);
    if (std::find(term.pages.begin(), term.pages.end(), page) == term.pages.end()) term.pages.push_back(page);
    at = end;
  }
}

}  // namespace

std::vector<Term> TermsOf(std::string_view page) {
  std::vector<Term> terms;
  for (const std::string& paragraph :
       std::vector<std::string>(absl::StrSplit(std::string(page), absl::ByString("\n\n")))) {
    if (!paragraph.starts_with("**")) continue;
    const std::string line = absl::StrReplaceAll(absl::StripTrailingAsciiWhitespace(paragraph), {{"\n", " "}});
    Term term;
    term.names = BoldNames(line);
    TakeMarks(line, term);
    terms.push_back(std::move(term));
  }
  return terms;
}

}  // namespace planwright
