// Pieces of the page: text that is safe to put between and inside tags, and drawings.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planwright {

// `text` as it must stand in an element or an attribute: markup characters as entities, control characters as spaces.
std::string Escaped(std::string_view text);

// At most `most` characters (UTF-8) of `text`, with its middle left out.
std::string Shortened(const std::string& text, size_t most);

// A coordinate or size, with one decimal if it has any.
std::string Px(double value);

// Pixels that `text` takes at the most, in the small type of labels.
double LabelWidth(std::string_view text);

struct Frame {
  double x = 0, y = 0, width = 0, height = 0;
};

// An inline SVG drawing of width x height pixels. Texts and titles are escaped here; classes are ours.
class Drawing {
 public:
  // `label` says what is drawn, to those who cannot see it.
  Drawing(double width, double height, std::string_view label);

  // `title`, where not empty, is shown when the mouse rests on the shape.
  void Rect(double x, double y, double width, double height, std::string_view classes, std::string_view title = "");
  void Line(double x1, double y1, double x2, double y2, std::string_view classes);
  void Path(std::string_view data, std::string_view classes, std::string_view title = "");
  void Text(double x, double y, std::string_view text, std::string_view classes);
  // A filled box with the first of `labels` that has room in it, in its middle; narrow ones keep a gap to the next.
  void Box(const Frame& frame, std::string_view classes, std::string_view color, const std::vector<std::string>& labels,
           std::string_view title);
  // A group of shapes with one title; `data` is one more attribute, ` data-rank="3"`.
  void Open(std::string_view classes, std::string_view data, std::string_view title);
  void Close() { body_ += "</g>\n"; }

  double width() const { return width_; }
  std::string Markup() const;

 private:
  double width_;
  std::string head_, body_;
};

// <section id="id"><h2>title</h2>...</section>
std::string Section(std::string_view id, std::string_view title, std::string_view body);

// A table whose cells are markup already. Columns of which every cell starts with a digit, or is empty, are aligned to
// the right.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Markup() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace planwright
