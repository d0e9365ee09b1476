// The terms of docs/glossary.md, for `plan explain lane`. The page is the only text: it is read here as Markdown, in
// which each paragraph that begins in bold defines terms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

struct Term {
  std::vector<std::string> names;  // in bold; the first begins the paragraph: "bridge", "leader", "fan-out"
  std::string text;                // the paragraph without Markdown's marks, on one line; code keeps its `marks`
  std::vector<std::string> pages;  // that it links to: "docs/training/data.md#index"
};

// The page as it is.
std::string_view GlossaryPage();

// The terms of a page, in its order.
std::vector<Term> TermsOf(std::string_view page);

}  // namespace planwright
