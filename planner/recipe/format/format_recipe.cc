#include "planner/recipe/format/format_recipe.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/text.h"
#include "planner/recipe/format/flow_line.h"
#include "planner/recipe/format/source_text.h"
#include "planner/recipe/recipe_digest.h"

namespace planwright {
namespace {

constexpr size_t kNoPlace = std::string::npos, kWidth = 120, kBeforeComment = 2;

struct UnknownForm {  // thrown, so that the file stays as it is
  int line;
};

using Lines = std::vector<std::string>;

// The lines above an entry or item: comments, and whether a blank line stands before them.
struct Lead {
  bool blank = false;
  Lines lines;  // comments without indentation; "" is a blank line between them
};

class Formatter {
 public:
  explicit Formatter(const SourceText& source) : source_(source) {}

  std::string Format(const YamlNode& root) {
    Lines lines;
    if (root.is_null()) {
      lines = TakeLead(1, source_.lines() + 1).lines;
    } else {
      if (source_.IsFlow(root) || root.is_scalar()) throw UnknownForm{root.where.line};
      lines = Block(root, RootPlace(), 1, source_.lines() + 1, 0, true);
    }
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines.empty() ? "" : absl::StrJoin(lines, "\n") + "\n";
  }

 private:
  // An entry of a map or an item of a list.
  struct Part {
    const YamlNode* value = nullptr;
    std::string head;                    // "tp:" or "-"
    int line = 0, column = 0, last = 0;  // of the key or dash; the last line of the value
    TablePlace place;
    Lead lead;
    int inner_end = 0;  // the line behind the comments that are inside a block value
  };

  bool IsBlock(const YamlNode& node) const { return (node.is_map() || node.is_sequence()) && !source_.IsFlow(node); }

  // The comments and blank lines of [first, end).
  Lead TakeLead(int first, int end) const {
    Lead lead;
    for (int line = first; line < end && line <= source_.lines(); ++line) {
      std::string text(absl::StripAsciiWhitespace(source_.Line(line)));
      if (text == "---" || text == "...") continue;
      if (text.starts_with("--- #") || text.starts_with("... #")) text = text.substr(4);
      if (!text.empty() && text[0] != '#') throw UnknownForm{line};
      if (!text.empty()) {
        lead.lines.push_back(text);
      } else if (lead.lines.empty()) {
        lead.blank = true;
      } else if (!lead.lines.back().empty()) {
        lead.lines.push_back("");
      }
    }
    return lead;
  }

  // The comments at the top that are the file's, whichever key comes first: those above a blank line, and what editors
  // and shells look for in the first lines. A comment that touches the first key is that key's.
  static Lines TakeHeader(Lines& above) {
    auto end = above.begin();
    while (end != above.end() && (end->starts_with("#!") || end->starts_with("# yaml-language-server:"))) ++end;
    const auto blank = std::find(above.rbegin(), above.rend(), "").base();  // behind it, or the beginning
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

  std::vector<Part> PartsOf(const YamlNode& node, const TablePlace& place, int end) const {
    std::vector<Part> parts;
    for (const YamlEntry& entry : node.entries) {
      parts.push_back({&entry.value,
                       Cat(KeyText(entry.key), ":"),
                       entry.key_where.line,
                       entry.key_where.column,
                       0,
                       Inside(place, node, entry.key),
                       {},
                       0});
      const std::string before =
          source_.Line(entry.key_where.line).substr(0, static_cast<size_t>(entry.key_where.column - 1));
      if (before.find_first_not_of(" -") != kNoPlace) throw UnknownForm{entry.key_where.line};
    }
    for (const YamlNode& item : node.items) {
      const auto [line, column] = DashOf(item);
      parts.push_back({&item, "-", line, column, 0, place, {}, 0});
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

  // The lines of a block whose first line may be `first` and whose comments end before `end`.
  Lines Block(const YamlNode& node, const TablePlace& place, int first, int end, size_t indent, bool root = false) {
    std::vector<Part> parts = PartsOf(node, place, end);
    for (size_t i = 0; i < parts.size(); ++i)
      parts[i].lead = TakeLead(i == 0 ? first : parts[i - 1].inner_end, parts[i].line);
    const Lead tail = TakeLead(parts.back().inner_end, end);
    Lines lines;
    if (root) {
      lines = TakeHeader(parts[0].lead.lines);
      parts[0].lead.blank = false;
    }
    std::vector<size_t> order(parts.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    if (node.is_map()) order = KeyOrder(node, place);
    std::swap(parts[0].lead.blank, parts[order[0]].lead.blank);
    const std::string spaces(indent, ' ');
    const auto add = [&](const Lead& lead, bool is_first) {
      if (lead.blank && !is_first) lines.push_back("");
      for (const std::string& line : lead.lines) lines.push_back(line.empty() ? "" : spaces + line);
    };
    for (size_t i = 0; i < order.size(); ++i) {
      Part& part = parts[order[i]];
      Lines value = PartLines(part, indent);
      add(part.lead, i == 0);
      lines.insert(lines.end(), value.begin(), value.end());
    }
    if (!tail.lines.empty()) add(tail, false);
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

  // `head` and what follows it. Comments between head and value go above.
  Lines PartLines(Part& part, size_t indent) {
    const YamlNode& value = *part.value;
    const std::string spaces(indent, ' '), head = spaces + part.head;
    if (IsBlock(value)) return BlockPart(part, indent);
    const bool below = !value.is_null() && value.where.line > part.line;
    if (below) {
      // The comment of the line of the key, and those below it.
      const std::string& line = source_.Line(part.line);
      if (const size_t at = SourceText::CommentAt(line); at != kNoPlace) part.lead.lines.push_back(line.substr(at));
      const Lead between = TakeLead(part.line + 1, value.where.line);
      part.lead.lines.insert(part.lead.lines.end(), between.lines.begin(), between.lines.end());
    }
    if (part.last > (below ? value.where.line : part.line)) return Kept(part, indent, below);
    const std::string& line = source_.Line(part.last);
    std::string text = value.is_null() ? head : Cat(head, " ", FlowLine(value, part.place, source_));
    const size_t comment = SourceText::CommentAt(line);
    if (comment == kNoPlace && text.size() > kWidth && source_.IsFlow(value) &&
        !(value.items.empty() && value.entries.empty()))
      return Broken(part, indent);
    return {comment == kNoPlace ? text : WithComment(text, line, comment)};
  }

  // The comment stays in its column if there is room.
  static std::string WithComment(std::string text, const std::string& line, size_t at) {
    text.resize(std::max(at, text.size() + kBeforeComment), ' ');
    return text + line.substr(at);
  }

  Lines BlockPart(Part& part, size_t indent) {
    const YamlNode& value = *part.value;
    const int first = value.is_map() ? value.entries[0].key_where.line : DashOf(value.items[0]).first;
    const std::string spaces(indent, ' ');
    // "- name: a": the first line of the block is that of the dash.
    if (part.head == "-") {
      if (first > part.line) {
        const std::string& line = source_.Line(part.line);
        if (const size_t at = SourceText::CommentAt(line); at != kNoPlace) part.lead.lines.push_back(line.substr(at));
        const Lead between = TakeLead(part.line + 1, first);
        part.lead.lines.insert(part.lead.lines.end(), between.lines.begin(), between.lines.end());
      }
      Lines lines = Block(value, part.place, first, part.inner_end, indent + 2);
      // Comments above the key that is now the first one go above the item.
      while (absl::StripLeadingAsciiWhitespace(lines[0])[0] == '#') {
        part.lead.lines.emplace_back(absl::StripLeadingAsciiWhitespace(lines[0]));
        lines.erase(lines.begin());
        while (lines[0].empty()) lines.erase(lines.begin());
      }
      lines[0] = Cat(spaces, "- ", lines[0].substr(indent + 2));
      return lines;
    }
    if (first == part.line) throw UnknownForm{part.line};
    const std::string& line = source_.Line(part.line);
    const size_t comment = SourceText::CommentAt(line);
    const std::string head = spaces + part.head;
    Lines lines = {comment == kNoPlace ? head : WithComment(head, line, comment)};
    const Lines inner = Block(value, part.place, part.line + 1, part.inner_end, indent + 2);
    lines.insert(lines.end(), inner.begin(), inner.end());
    return lines;
  }

  // A value of several lines stays as it is written, moved as its key is.
  Lines Kept(const Part& part, size_t indent, bool below) const {
    const int first = below ? part.value->where.line : part.line;
    const std::string head = Cat(std::string(indent, ' '), part.head, " ");
    Lines lines = {head + source_.Line(first).substr(static_cast<size_t>(part.value->where.column - 1))};
    const ptrdiff_t move = static_cast<ptrdiff_t>(indent) - (part.column - 1);
    for (int line = first + 1; line <= part.last; ++line) {
      const ptrdiff_t now = static_cast<ptrdiff_t>(source_.Indent(line)) + move;
      const std::string text(absl::StripLeadingAsciiWhitespace(source_.Line(line)));
      // Below its key a value is deeper than it.
      lines.push_back(
          text.empty()
              ? ""
              : std::string(static_cast<size_t>(std::max<ptrdiff_t>(now, static_cast<ptrdiff_t>(indent) + 1)), ' ') +
                    text);
    }
    return lines;
  }

  // A collection that is too long for a line, one entry a line.
  Lines Broken(const Part& part, size_t indent) const {
    const YamlNode& value = *part.value;
    const std::string inner(indent + 2, ' ');
    Lines lines = {std::string(indent, ' ') + part.head};
    for (const size_t i : KeyOrder(value, part.place)) {
      const YamlEntry& entry = value.entries[i];
      lines.push_back(
          Cat(inner, KeyText(entry.key), ": ", FlowLine(entry.value, Inside(part.place, value, entry.key), source_)));
    }
    for (const YamlNode& item : value.items) lines.push_back(Cat(inner, "- ", FlowLine(item, part.place, source_)));
    if (part.head == "-") {
      lines.erase(lines.begin());
      lines[0] = Cat(std::string(indent, ' '), "- ", lines[0].substr(indent + 2));
    }
    return lines;
  }

  const SourceText& source_;
};

bool Same(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.text != b.text || a.quoted != b.quoted || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size())
    return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!Same(a.items[i], b.items[i])) return false;
  }
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const YamlEntry& entry) {
    const YamlEntry* other = b.Find(entry.key);
    return other != nullptr && Same(entry.value, other->value);
  });
}

// Whether most lines of a text end in "\r\n", as editors of Windows write them. A file with both kinds of ends is
// formatted to the more frequent one, which changes the fewest lines; as many of both: "\n".
bool HasLineEndsOfWindows(std::string_view text) {
  int64_t windows = 0, others = 0;
  for (size_t at = text.find('\n'); at != kNoPlace; at = text.find('\n', at + 1))
    ++(at > 0 && text[at - 1] == '\r' ? windows : others);
  return windows > others;
}

}  // namespace

bool SameRecipe(const YamlNode& a, const YamlNode& b) { return Same(a, b) && RecipeDigest(a) == RecipeDigest(b); }

std::optional<absl::StatusOr<std::string>> FormatRecipe(const std::string& text, const std::string& name,
                                                        Diagnostics& problems) {
  const YamlOrigin origin = {std::make_shared<const std::string>(name)};
  const std::optional<YamlNode> tree = ParseYaml(text, origin, problems);
  if (!tree) return std::nullopt;
  const SourceText source(text);
  std::string formatted;
  try {
    formatted = Formatter(source).Format(*tree);
  } catch (const UnknownForm& form) {
    return absl::UnimplementedError(
        Cat(name, ":", form.line, ": this way of writing YAML cannot be formatted; the file stays as it is"));
  }
  if (HasLineEndsOfWindows(text)) formatted = absl::StrReplaceAll(formatted, {{"\n", "\r\n"}});
  Diagnostics ignored;
  const std::optional<YamlNode> again = ParseYaml(formatted, origin, ignored);
  std::vector<std::string> before = source.Comments(*tree);
  std::vector<std::string> after = again ? SourceText(formatted).Comments(*again) : std::vector<std::string>();
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  if (!again || !SameRecipe(*tree, *again) || before != after) {
    return absl::UnimplementedError(
        Cat(name, ": formatted, it would say something else or lose a comment; the file stays as it is"));
  }
  return formatted;
}

}  // namespace planwright
