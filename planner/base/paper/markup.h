// Building blocks of the page: text that is safe between and inside tags, SVG drawings, sections and tables.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planwright {

// `text` for an element or an attribute: markup characters become entities, control characters spaces.
std::string Escaped(std::string_view text);

// At most `most` characters (UTF-8) of `text`, with its middle left out.
std::string Shortened(const std::string& text, size_t most);

// A coordinate or size, with one decimal if it has any.
std::string Px(double value);

// Pixels that `text` takes at most in the small type of labels. An estimate by the number of characters: the reader's
// fonts are not known.
double LabelWidth(std::string_view text);

inline constexpr double kDrawingWidth = 1060, kBarHeight = 24;  // pixels

struct Frame {
  double x = 0, y = 0, width = 0, height = 0;
};

// An inline SVG drawing of width x height pixels. Texts and titles are escaped here. Classes and path data are written
// by this room and are not escaped.
class Drawing {
 public:
  // `label`: what is drawn, for screen readers.
  Drawing(double width, double height, std::string_view label);

  // `title`: shown when the mouse rests on the shape; empty: nothing.
  void Rect(double x, double y, double width, double height, std::string_view classes, std::string_view title = "");
  void Line(double x1, double y1, double x2, double y2, std::string_view classes);
  void Path(std::string_view data, std::string_view classes, std::string_view title = "");
  void Text(double x, double y, std::string_view text, std::string_view classes);
  // A filled box with a gap to its right neighbor. In its middle is the first of `labels` that has room, or none.
  void Box(const Frame& frame, std::string_view classes, std::string_view color, const std::vector<std::string>& labels,
           std::string_view title);
  // A group of shapes with one title, up to Close. `data`: one more attribute, ` data-rank="3"`.
  void Open(std::string_view classes, std::string_view data, std::string_view title);
  void Close() { body_ += "</g>\n"; }

  double width() const { return width_; }
  std::string Markup() const;

 private:
  double width_;
  std::string head_, body_;
};

// A whole page with the style sheet of style.cc around `body`, which is markup. `title` is escaped here.
std::string Page(std::string_view title, std::string_view body);
// Whether a file that begins so is such a page.
bool IsPage(std::string_view head);

// A large number or word with what it means below; `what` is markup. They stand in <div class="tiles">.
std::string Tile(std::string_view value, std::string_view what);

// <section id="id"><h2>title</h2>...</section>
std::string Section(std::string_view id, std::string_view title, std::string_view body);

// A table whose cells are markup already: escape what comes from a recipe. A column is aligned to the right if all of
// its cells (the header aside) start with a digit or are empty.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Markup() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace planwright
