// A strict reader of pages for tests: all tags are closed in order, attributes are quoted, entities are known. It reads
// only what our page may contain, so anything else is a mistake of the page.
#pragma once

#include <cctype>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace planwright::testing {

struct Element {
  std::string tag;
  std::map<std::string, std::string> attributes;
  std::string text;  // its own text, without that of the elements inside it
  std::string svg;   // viewBox of the drawing around it; empty outside drawings
};

class MarkupReader {
 public:
  explicit MarkupReader(const std::string& page) : page_(page) {}

  // Every element, in order of their start. Throws std::runtime_error with the place of a mistake.
  std::vector<Element> Read() {
    Expect("<!DOCTYPE html>");
    while (at_ < page_.size()) {
      if (page_[at_] != '<')
        ReadText();
      else if (page_.compare(at_, 2, "</") == 0)
        ReadEnd();
      else
        ReadStart();
    }
    if (!open_.empty()) Fail("<" + elements_[open_.back()].tag + "> is not closed");
    return elements_;
  }

 private:
  [[noreturn]] void Fail(const std::string& why) {
    throw std::runtime_error(why + " at byte " + std::to_string(at_) + ": " +
                             page_.substr(at_ < 40 ? 0 : at_ - 40, 80));
  }
  void Expect(const std::string& text) {
    if (page_.compare(at_, text.size(), text) != 0) Fail("no " + text);
    at_ += text.size();
  }
  std::string Word() {
    const size_t first = at_;
    while (at_ < page_.size() && (std::isalnum(static_cast<unsigned char>(page_[at_])) || page_[at_] == '-')) ++at_;
    if (at_ == first) Fail("no name");
    return page_.substr(first, at_ - first);
  }
  std::string Until(char end) {
    std::string text;
    for (; at_ < page_.size() && page_[at_] != end; ++at_) {
      const unsigned char c = page_[at_];
      if (c == '<' || (c < 0x20 && c != '\n') || c == 0x7f) Fail("a character that must be escaped");
      text += page_[at_];
      if (c == '&') {
        const size_t semicolon = page_.find(';', at_);
        const std::string entity = page_.substr(at_, semicolon - at_ + 1);
        if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&#39;" &&
            entity != "&#10;") {
          Fail("an unknown entity");
        }
      }
    }
    return text;
  }
  void ReadText() {
    const std::string text = Until('<');
    if (!open_.empty())
      elements_[open_.back()].text += text;
    else if (text.find_first_not_of('\n') != std::string::npos)
      Fail("text outside the page");
  }
  void ReadStart() {
    Expect("<");
    Element element{Word(), {}, "", svg_};
    while (page_[at_] == ' ') {
      ++at_;
      const std::string name = Word();
      Expect("=\"");
      if (!element.attributes.emplace(name, Until('"')).second) Fail("attribute " + name + " twice");
      Expect("\"");
    }
    if (element.tag == "svg") svg_ = element.attributes["viewBox"];
    const bool closed = page_[at_] == '/';
    if (closed) ++at_;
    Expect(">");
    elements_.push_back(element);
    if (!closed) open_.push_back(elements_.size() - 1);
  }
  void ReadEnd() {
    Expect("</");
    const std::string tag = Word();
    Expect(">");
    if (open_.empty() || elements_[open_.back()].tag != tag) Fail("</" + tag + "> closes nothing");
    open_.pop_back();
    if (tag == "svg") svg_.clear();
  }

  const std::string& page_;
  size_t at_ = 0;
  std::string svg_;
  std::vector<Element> elements_;
  std::vector<size_t> open_;
};

}  // namespace planwright::testing
