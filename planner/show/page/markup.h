// Pieces of the page: text that is safe to put between and inside tags, and drawings.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planwright {

// `text` as it must stand in an element or an attribute: markup characters as entities, control characters as spaces.
std::string Escaped(std::string_view text);

// A coordinate or size, with one decimal if it has any.
std::string Px(double value);

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
  // A group of shapes with one title; `data` is one more attribute, ` data-rank="3"`.
  void Open(std::string_view classes, std::string_view data, std::string_view title);
  void Close() { body_ += "</g>\n"; }

  std::string Markup() const;

 private:
  std::string head_, body_;
};

// <section id="id"><h2>title</h2>...</section>
std::string Section(std::string_view id, std::string_view title, std::string_view body);

// A table whose cells are markup already. Columns of which every cell starts with a digit are aligned to the right.
class HtmlTable {
 public:
  explicit HtmlTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string Markup() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace planwright
