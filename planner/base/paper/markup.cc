#include "planner/base/paper/markup.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "planner/base/paper/style.h"
#include "planner/base/paper/table.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

constexpr std::string_view kPageStart =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
    "<meta name=\"generator\" content=\"Planwright\"/>\n";

std::string TitleOf(std::string_view title) { return title.empty() ? "" : Cat("<title>", Escaped(title), "</title>"); }

// A self-closed element, or one around its title. SVG shows a <title> child when the mouse rests on the shape.
std::string Element(std::string_view start, std::string_view name, std::string_view title) {
  if (title.empty()) return Cat(start, "/>\n");
  return Cat(start, ">", TitleOf(title), "</", name, ">\n");
}

}  // namespace

std::string Escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&': safe += "&amp;"; break;
      case '<': safe += "&lt;"; break;
      case '>': safe += "&gt;"; break;
      case '"': safe += "&quot;"; break;
      case '\'': safe += "&#39;"; break;
      case '\n': safe += "&#10;"; break;  // titles have several lines
      default: safe += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
    }
  }
  return safe;
}

std::string Shortened(const std::string& text, size_t most) {
  if (Width(text) <= most) return text;
  // Bytes of the first `characters` characters: a character of several bytes is never cut.
  const auto prefix = [&](size_t characters) {
    size_t at = 0;
    for (; at < text.size(); ++at) {
      const bool starts = (static_cast<unsigned char>(text[at]) & 0xC0) != 0x80;
      if (starts && characters-- == 0) break;
    }
    return at;
  };
  return Cat(text.substr(0, prefix((most - 1) / 2)), "…", text.substr(prefix(Width(text) - most / 2)));
}

double LabelWidth(std::string_view text) { return 6.8 * static_cast<double>(Width(std::string(text))); }

std::string Px(double value) {
  // A tenth of a pixel is enough, and keeps pages with thousands of shapes small.
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  std::string result = text;
  if (result.ends_with(".0")) result.resize(result.size() - 2);
  return result;
}

Drawing::Drawing(double width, double height, std::string_view label)
    : width_(width), head_(Cat("<svg viewBox=\"0 0 ", Px(width), " ", Px(height), "\" width=\"", Px(width),
                               "\" height=\"", Px(height), "\" role=\"img\" aria-label=\"", Escaped(label), "\">\n")) {}

void Drawing::Rect(double x, double y, double width, double height, std::string_view classes, std::string_view title) {
  body_ += Element(Cat("<rect x=\"", Px(x), "\" y=\"", Px(y), "\" width=\"", Px(width), "\" height=\"", Px(height),
                       "\" class=\"", classes, "\""),
                   "rect", title);
}

void Drawing::Line(double x1, double y1, double x2, double y2, std::string_view classes) {
  body_ += Cat("<line x1=\"", Px(x1), "\" y1=\"", Px(y1), "\" x2=\"", Px(x2), "\" y2=\"", Px(y2), "\" class=\"",
               classes, "\"/>\n");
}

void Drawing::Path(std::string_view data, std::string_view classes, std::string_view title) {
  body_ += Element(Cat("<path d=\"", data, "\" class=\"", classes, "\""), "path", title);
}

void Drawing::Text(double x, double y, std::string_view text, std::string_view classes) {
  body_ += Cat("<text x=\"", Px(x), "\" y=\"", Px(y), "\" class=\"", classes, "\">", Escaped(text), "</text>\n");
}

void Drawing::Box(const Frame& frame, std::string_view classes, std::string_view color,
                  const std::vector<std::string>& labels, std::string_view title) {
  const double width = frame.width - std::min(1.0, frame.width / 5);  // the gap: a pixel, of narrow boxes less
  Open(classes, "", title);
  Rect(frame.x, frame.y, width, frame.height, color);
  for (const std::string& label : labels) {
    if (LabelWidth(label) + 2 > width) continue;
    Text(frame.x + width / 2, frame.y + frame.height / 2 + 4, label, "mid small");
    break;
  }
  Close();
}

void Drawing::Open(std::string_view classes, std::string_view data, std::string_view title) {
  body_ += Cat("<g class=\"", classes, "\"", data, ">", TitleOf(title));
}

std::string Drawing::Markup() const { return Cat("<div class=\"drawing\">", head_, body_, "</svg></div>\n"); }

bool IsPage(std::string_view head) { return head.starts_with(kPageStart); }

std::string Page(std::string_view title, std::string_view body) {
  // An empty icon keeps browsers from asking a server for one.
  return Cat(kPageStart,
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n<link rel=\"icon\" "
             "href=\"data:,\"/>\n<title>",
             Escaped(title), "</title>\n<style>", kPageStyle, "</style>\n</head>\n<body>\n<main>\n", body,
             "</main>\n</body>\n</html>\n");
}

std::string Tile(std::string_view value, std::string_view what) {
  return Cat("<div><b>", Escaped(value), "</b><span>", what, "</span></div>\n");
}

std::string Section(std::string_view id, std::string_view title, std::string_view body) {
  return Cat("<section id=\"", id, "\">\n<h2>", Escaped(title), "</h2>\n", body, "</section>\n");
}

std::string HtmlTable::Markup() const {
  // For each column: whether some cell is a number, and whether some is not.
  std::vector<bool> numbers(rows_[0].size()), words(rows_[0].size());
  for (size_t r = 1; r < rows_.size(); ++r) {
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      if (!rows_[r][c].empty()) (std::isdigit(static_cast<unsigned char>(rows_[r][c][0])) ? numbers : words)[c] = true;
    }
  }
  std::string text = "<div class=\"scroll\"><table>\n";
  for (size_t r = 0; r < rows_.size(); ++r) {
    text += "<tr>";
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      const char* tag = r == 0 ? "th" : "td";
      Append(text, "<", tag, numbers[c] && !words[c] ? " class=\"number\">" : ">", rows_[r][c], "</", tag, ">");
    }
    text += "</tr>\n";
  }
  return text + "</table></div>\n";
}

}  // namespace planwright
