#include "planner/recipe/yaml/yaml_comments.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "planner/base/text/text.h"
#include "planner/recipe/yaml/source_text.h"
#include "planner/recipe/yaml/yaml_text.h"

namespace planwright {
namespace {

constexpr size_t kNoPlace = std::string::npos;

struct UnknownForm {  // thrown, so that the file stays as it is
  int line;
};

using Lines = std::vector<std::string>;

class Reader {
 public:
  explicit Reader(const SourceText& source) : source_(source) {}

  void Read(YamlNode& root) const {
    if (root.is_null()) {
      Set(TakeLead(1, source_.lines() + 1), root);
      return;
    }
    if (source_.IsFlow(root) || root.is_scalar()) throw UnknownForm{root.where.line};
    ReadBlock(root, 1, source_.lines() + 1, true);
  }

 private:
  // An entry of a map or an item of a list.
  struct Part {
    YamlNode* value = nullptr;
    bool item = false;
    int line = 0, column = 0, last = 0;  // of the key or dash; the last line of the value
    YamlComments around = {};
    int inner_end = 0;  // the line after the comments that are inside a block value
  };

  bool IsBlock(const YamlNode& node) const { return (node.is_map() || node.is_sequence()) && !source_.IsFlow(node); }

  static void Set(YamlComments comments, YamlNode& node) {
    if (comments.blank || !comments.above.empty() || !comments.beside.empty())
      node.comments = std::make_shared<const YamlComments>(std::move(comments));
  }
  static void Set(YamlStyle style, YamlNode& node) { node.style = std::make_shared<const YamlStyle>(std::move(style)); }

  // The comments and blank lines of [first, end).
  YamlComments TakeLead(int first, int end) const {
    YamlComments lead;
    for (int line = first; line < end && line <= source_.lines(); ++line) {
      std::string text(absl::StripAsciiWhitespace(source_.Line(line)));
      if (text == "---" || text == "...") continue;
      if (text.starts_with("--- #") || text.starts_with("... #")) text = text.substr(4);
      if (!text.empty() && text[0] != '#') throw UnknownForm{line};
      if (!text.empty()) {
        lead.above.push_back(text);
      } else if (lead.above.empty()) {
        lead.blank = true;
      } else if (!lead.above.back().empty()) {
        lead.above.emplace_back();
      }
    }
    return lead;
  }

  // The comments at the top that are the file's, whichever key comes first: those above a blank line, and what editors
  // and shells look for in the first lines. A comment that touches the first key is that key's.
  static Lines TakeHeader(Lines& above) {
    auto end = above.begin();
    while (end != above.end() && (end->starts_with("#!") || end->starts_with("# yaml-language-server:"))) ++end;
    const auto blank = std::find(above.rbegin(), above.rend(), "").base();  // after it, or the beginning
    end = std::max(end, blank);
    Lines header(above.begin(), end);
    above.erase(above.begin(), end);
    return header;
  }

  int LastLine(const YamlNode& node, int parent, int limit) const {
    if (!IsBlock(node)) return source_.LastLine(node, parent, limit);
    if (node.is_map()) {
      const YamlEntry& entry = node.entries.back();
      return entry.value.is_null() ? entry.key_where.line : LastLine(entry.value, entry.key_where.column, limit);
    }
    const YamlNode& item = node.items.back();
    return LastLine(item, DashOf(item).second, limit);
  }

  // Line and column of the dash of an item.
  std::pair<int, int> DashOf(const YamlNode& item) const {
    if (item.is_null()) throw UnknownForm{item.where.line};
    int line = item.where.line;
    std::string before = source_.Line(line).substr(0, static_cast<size_t>(item.where.column - 1));
    while (before.find('-') == kNoPlace) {
      if (--line < 1) throw UnknownForm{item.where.line};
      before = source_.Line(line).substr(0, SourceText::CommentAt(source_.Line(line)));
      if (before.find_first_not_of(" -") != kNoPlace) throw UnknownForm{line};
    }
    // The dash nearest to the item: a list begins where its first dash does, so one before that is another list's.
    return {line, static_cast<int>(before.rfind('-')) + 1};
  }

  std::vector<Part> PartsOf(YamlNode& node, int end) const {
    std::vector<Part> parts;
    for (YamlEntry& entry : node.entries) {
      parts.push_back({.value = &entry.value, .line = entry.key_where.line, .column = entry.key_where.column});
      const std::string before =
          source_.Line(entry.key_where.line).substr(0, static_cast<size_t>(entry.key_where.column - 1));
      if (before.find_first_not_of(" -") != kNoPlace) throw UnknownForm{entry.key_where.line};
    }
    for (YamlNode& item : node.items) {
      const auto [line, column] = DashOf(item);
      parts.push_back({.value = &item, .item = true, .line = line, .column = column});
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      const int limit = i + 1 < parts.size() ? parts[i + 1].line : end;
      if (i > 0 && parts[i].line <= parts[i - 1].line) throw UnknownForm{parts[i].line};
      Part& part = parts[i];
      part.last = part.value->is_null() ? part.line : LastLine(*part.value, part.column, limit);
      part.inner_end = part.last + 1;
      // Comments that are deeper than the key belong to the end of its block.
      for (int line = part.last + 1; IsBlock(*part.value) && line < limit; ++line) {
        if (!source_.IsComment(line)) continue;
        if (static_cast<int>(source_.Indent(line)) < part.column) break;
        part.inner_end = line + 1;
      }
    }
    return parts;
  }

  // A block whose first line may be `first` and whose comments end before `end`.
  void ReadBlock(YamlNode& node, int first, int end, bool root = false) const {
    std::vector<Part> parts = PartsOf(node, end);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].around = TakeLead(i == 0 ? first : parts[i - 1].inner_end, parts[i].line);
    Set(YamlStyle{.form = YamlStyle::Form::kBlock, .tail = TakeLead(parts.back().inner_end, end)}, node);
    if (root) {
      Set(YamlComments{.above = TakeHeader(parts[0].around.above)}, node);
      parts[0].around.blank = false;
    }
    for (Part& part : parts) {
      ReadPart(part);
      Set(std::move(part.around), *part.value);
    }
  }

  // Comments between a key or dash and its value go above: that of its line, and those of [line + 1, first).
  void TakeBetween(Part& part, int first) const {
    const std::string& line = source_.Line(part.line);
    if (const size_t at = SourceText::CommentAt(line); at != kNoPlace) part.around.above.push_back(line.substr(at));
    const YamlComments between = TakeLead(part.line + 1, first);
    part.around.above.insert(part.around.above.end(), between.above.begin(), between.above.end());
  }

  void TakeBeside(Part& part, int line) const {
    const size_t at = SourceText::CommentAt(source_.Line(line));
    if (at != kNoPlace) part.around.beside = source_.Line(line).substr(at), part.around.column = at;
  }

  void ReadPart(Part& part) const {
    YamlNode& value = *part.value;
    if (IsBlock(value)) {
      const int first = value.is_map() ? value.entries[0].key_where.line : DashOf(value.items[0]).first;
      if (part.item) {
        if (first > part.line) TakeBetween(part, first);
        return ReadBlock(value, first, part.inner_end);
      }
      if (first == part.line) throw UnknownForm{part.line};
      TakeBeside(part, part.line);
      return ReadBlock(value, part.line + 1, part.inner_end);
    }
    const bool below = !value.is_null() && value.where.line > part.line;
    if (below) TakeBetween(part, value.where.line);
    ReadStyle(value);
    const int first = below ? value.where.line : part.line;
    if (part.last > first) return Keep(first, part, value);
    TakeBeside(part, part.last);
  }

  // Of a value that is no block.
  void ReadStyle(YamlNode& value) const {
    for (YamlNode& item : value.items) ReadStyle(item);
    for (YamlEntry& entry : value.entries) ReadStyle(entry.value);
    if (value.is_map() || value.is_sequence()) {
      Set(YamlStyle{.form = YamlStyle::Form::kFlow}, value);
    } else if (value.is_scalar()) {
      std::string written = source_.Written(value);
      if (written != FlowText(value)) Set(YamlStyle{.written = std::move(written)}, value);
    }
  }

  void Keep(int first, const Part& part, YamlNode& value) const {
    YamlStyle style = value.style ? *value.style : YamlStyle();
    style.lines = {source_.Line(first).substr(static_cast<size_t>(value.where.column - 1))};
    style.indents = {0};
    for (int line = first + 1; line <= part.last; ++line) {
      style.lines.emplace_back(absl::StripLeadingAsciiWhitespace(source_.Line(line)));
      style.indents.push_back(static_cast<std::ptrdiff_t>(source_.Indent(line)) - (part.column - 1));
    }
    Set(std::move(style), value);
  }

  const SourceText& source_;
};

}  // namespace

absl::Status ReadComments(const std::string& text, const std::string& name, YamlNode& tree) {
  const SourceText source(text);
  try {
    Reader(source).Read(tree);
  } catch (const UnknownForm& form) {
    return absl::UnimplementedError(
        Cat(name, ":", form.line, ": this way of writing YAML cannot be formatted; the file stays as it is"));
  }
  return absl::OkStatus();
}

}  // namespace planwright
