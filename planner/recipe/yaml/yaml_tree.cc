#include "planner/recipe/yaml/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/recipe/yaml/text_checks.h"

namespace planwright {
namespace {

struct StopParsing {};  // thrown to leave the parser when more problems would not help the author

constexpr std::string_view kNoSharing = "to share parts between recipes use `extends`";
constexpr std::string_view kQuoteSpecial = "put the value in quotes if it starts with one of  * & ! | > % @ `";

// Builds the tree from the events of the parser, and refuses the parts of YAML that recipes do not use.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& text, const YamlOrigin& origin, Diagnostics& problems)
      : text_(text), origin_(origin), problems_(problems) {}

  // The tree, after the parser is done. Only if !failed().
  YamlNode TakeRoot() { return std::move(root_); }
  bool failed() const { return failed_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    Refuse(DiagnosticKind::kYamlFeature, LocationOf(mark), "the file contains a second YAML document",
           "a recipe is one document: remove the `---` before it");
    throw StopParsing();
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    YamlNode node = Start(YamlNode::Kind::kNull, mark, "", anchor);
    Add(std::move(node));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(DiagnosticKind::kYamlFeature, LocationOf(mark), "YAML aliases (`*`) are not allowed in recipes",
           Cat(kQuoteSpecial, "; ", kNoSharing));
    YamlNode node;
    node.where = LocationOf(mark);
    Add(std::move(node));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode node = Start(YamlNode::Kind::kScalar, mark, tag, anchor);
    node.text = value;
    FindExtent(node, mark);
    // CheckText has seen the text. In double quotes a control character can be written with a backslash, and between
    // the lines of a block there are line breaks.
    if (!IsPrintable(value)) {
      Refuse(DiagnosticKind::kFileEncoding, node.where, Cat("the text has a control character: ", Quoted(value)),
             value.find('\n') == std::string::npos ? "remove it: terminals obey it, and a plan has no such text"
                                                   : "write one line; of a list, an item for each line");
    }
    Add(std::move(node));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(Start(YamlNode::Kind::kSequence, mark, tag, anchor));
  }
  void OnSequenceEnd() override { Close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(Start(YamlNode::Kind::kMap, mark, tag, anchor));
  }
  void OnMapEnd() override { Close(); }

 private:
  // A map or list whose end is not reached yet.
  struct OpenNode {
    YamlNode node;
    bool has_key = false;
    YamlEntry pending;                     // a key that waits for its value, if has_key
    std::map<std::string, Location> keys;  // the locations of the keys so far
  };

  // Marks count lines and columns from 0. The first line may start in the middle of a line of the origin.
  Location LocationOf(const YAML::Mark& mark) const {
    Location where;
    where.file = origin_.file;
    where.line = origin_.line + std::max(mark.line, 0);
    where.column = std::max(mark.column, 0) + (mark.line <= 0 ? origin_.column : 1);
    return where;
  }

  // The character at a mark. Events do not say whether a scalar was quoted or had an empty tag; the text does.
  char CharAt(const YAML::Mark& mark) const {
    return mark.pos >= 0 && static_cast<size_t>(mark.pos) < text_.size() ? text_[mark.pos] : '\0';
  }

  // At most one problem at a location, and 20 in all: one mistake often causes several events.
  void Refuse(DiagnosticKind kind, const Location& where, std::string message, std::string help) {
    failed_ = true;
    if (!refused_.insert({where.line, where.column}).second) return;
    problems_.Error(kind, where, std::move(message), std::move(help));
    if (refused_.size() >= 20) throw StopParsing();
  }

  // A node of this kind at the mark. Refuses its anchor or tag, if it has one.
  YamlNode Start(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    YamlNode node;
    node.kind = kind;
    node.where = LocationOf(mark);
    // yaml-cpp reports "?" for plain and "!" for quoted scalars without a tag.
    const bool tagged = !tag.empty() && tag != "?" && tag != "!";
    if (anchor != 0) {
      Refuse(DiagnosticKind::kYamlFeature, node.where, "YAML anchors (`&`) are not allowed in recipes",
             Cat(kQuoteSpecial, "; ", kNoSharing));
    } else if (tagged || (kind == YamlNode::Kind::kScalar && CharAt(mark) == '!')) {
      Refuse(DiagnosticKind::kYamlFeature, node.where, "YAML tags (`!`) are not allowed in recipes",
             Cat("remove it; ", kQuoteSpecial));
    }
    return node;
  }

  // Sets the length of a scalar in the text, for the underline of messages, and whether it is quoted. A scalar over
  // several lines keeps length 1.
  void FindExtent(YamlNode& node, const YAML::Mark& mark) {
    const char first = CharAt(mark);
    const size_t at = mark.pos;
    if (first == '"' || first == '\'') {
      node.quoted = true;
      const size_t end = EndOfQuoted(text_, at);
      if (end == std::string::npos) {
        Refuse(DiagnosticKind::kYamlSyntax, node.where, "this quote is never closed", "close it on the same line");
      } else if (text_.find('\n', at) >= end) {
        node.where.length = static_cast<int>(end - at);
      }
    } else if (first == '|' || first == '>') {
      node.quoted = true;
    } else if (!node.text.empty() && text_.compare(at, node.text.size(), node.text) == 0) {
      node.where.length = static_cast<int>(node.text.size());
    }
  }

  void Open(YamlNode node) {
    if (stack_.size() >= kDeepestRecipe) {
      Refuse(DiagnosticKind::kTooLarge, node.where,
             Cat("maps and lists are nested more than ", kDeepestRecipe, " levels deep"), "use fewer levels");
      throw StopParsing();
    }
    stack_.emplace_back();
    stack_.back().node = std::move(node);
  }

  void Close() {
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    Add(std::move(node));
  }

  // Adds a finished node to the open map or list. In a map, keys and values alternate.
  void Add(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    OpenNode& open = stack_.back();
    if (open.node.is_sequence()) {
      open.node.items.push_back(std::move(node));
    } else if (open.has_key) {
      open.has_key = false;
      open.pending.value = std::move(node);
      open.node.entries.push_back(std::move(open.pending));
    } else {
      TakeKey(open, std::move(node));
    }
  }

  // Makes the node the key of the next value.
  void TakeKey(OpenNode& open, YamlNode node) {
    open.has_key = true;
    open.pending = {};
    open.pending.key_where = node.where;
    if (!node.is_scalar() || node.text.empty()) {
      Refuse(DiagnosticKind::kYamlSyntax, node.where, Cat("a key must be a word, found ", Describe(node)),
             "write a word before the `:`");
      return;
    }
    if (node.text == "<<") {
      Refuse(DiagnosticKind::kYamlFeature, node.where, "YAML merge keys (`<<`) are not allowed in recipes",
             std::string(kNoSharing));
      return;
    }
    auto [first, is_new] = open.keys.emplace(node.text, node.where);
    if (!is_new) {
      failed_ = true;
      problems_
          .Error(DiagnosticKind::kRepeatedKey, node.where, Cat("key ", Quoted(node.text), " is given twice"),
                 "remove one")
          .notes.push_back({first->second, "first given here"});
      if (++repeats_ >= 20) throw StopParsing();
    }
    open.pending.key = std::move(node.text);
  }

  const std::string& text_;
  const YamlOrigin& origin_;
  Diagnostics& problems_;
  std::vector<OpenNode> stack_;
  YamlNode root_;
  int documents_ = 0;
  int repeats_ = 0;
  bool failed_ = false;
  std::set<std::pair<int, int>> refused_;
};

// A message of yaml-cpp, and ours for it.
struct SyntaxErrorText {
  std::string_view yaml_cpp, message, help;
};

// yaml-cpp's messages name the states of its scanner. These say what is wrong in the file.
constexpr SyntaxErrorText kSyntaxErrorTexts[] = {
    {"alias not found", "`*` starts a YAML alias", kQuoteSpecial},
    {"illegal character found while scanning alias", "`*` starts a YAML alias", kQuoteSpecial},
    {"the referenced anchor is not defined", "`*` starts a YAML alias", kQuoteSpecial},
    {"anchor not found", "`&` starts a YAML anchor", kQuoteSpecial},
    {"illegal character found while scanning anchor", "`&` starts a YAML anchor", kQuoteSpecial},
    {"unknown token", "this character cannot start a value", kQuoteSpecial},
    {"illegal map value", "unexpected `:`: there can be no key here",
     "put a value that contains `: ` in quotes; give nested keys a line of their own"},
    {"end of map not found", "this line is not aligned with the map before it",
     "start all keys of a map in the same column, and write `: ` after each key"},
    {"end of sequence not found", "this line is not aligned with the list before it",
     "start all items of a list in the same column"},
    {"end of map flow not found", "a `{` before this place is not closed",
     "put `,` between entries and close it with `}`"},
    {"end of sequence flow not found", "a `[` before this place is not closed",
     "put `,` between items and close it with `]`"},
    {"illegal flow end", "this closing bracket has no opening bracket", "remove it, or add the opening bracket"},
    {"illegal block entry", "unexpected list item `- `: there can be no list here",
     "start the list on a line of its own"},
    {"illegal EOF in scalar", "this quote is never closed", "close it on the same line"},
};

void AddSyntaxError(const YAML::Exception& error, const std::string& text, const YamlOrigin& origin,
                    Diagnostics& problems) {
  const size_t at = std::min<size_t>(std::max(error.mark.pos, 0), text.size());
  std::string message = Printable(error.msg), help;
  for (const SyntaxErrorText& known : kSyntaxErrorTexts) {
    if (!error.msg.starts_with(known.yaml_cpp)) continue;
    message = known.message;
    help = known.help;
    break;
  }
  // An open quote makes the parser stop much later: point at the quote instead.
  const size_t quote = FirstOpenQuote(text, at);
  if (quote == std::string::npos) {
    problems.Error(DiagnosticKind::kYamlSyntax, LocationOfByte(text, at, origin), std::move(message), std::move(help));
    return;
  }
  problems
      .Error(DiagnosticKind::kYamlSyntax, LocationOfByte(text, quote, origin), "this quote is not closed on its line",
             "close it")
      .notes.push_back({LocationOfByte(text, at, origin), Cat("the parser stopped here: ", message)});
}

}  // namespace

const YamlEntry* YamlNode::Find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry;
  }
  return nullptr;
}

void YamlNode::Replace(YamlNode value) {
  if (!value.comments) value.comments = std::move(comments);
  *this = std::move(value);
}

void YamlNode::MarkChanged() {
  if (!style || style->lines.empty()) return;
  YamlStyle changed = *style;
  changed.lines.clear(), changed.indents.clear();
  style = std::make_shared<const YamlStyle>(std::move(changed));
}

std::optional<YamlNode> ParseYaml(const std::string& text, const YamlOrigin& origin, Diagnostics& problems) {
  if (!CheckText(text, origin, problems)) return std::nullopt;
  TreeBuilder builder(text, origin, problems);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const StopParsing&) {
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    if (!builder.failed()) AddSyntaxError(error, text, origin, problems);
    return std::nullopt;
  }
  if (builder.failed()) return std::nullopt;
  return builder.TakeRoot();
}

std::optional<YamlNode> ParseValue(const std::string& text, const YamlOrigin& origin) {
  Diagnostics not_told;
  return ParseYaml(text, origin, not_told);
}

YamlNode ScalarNode(std::string text, const Location& where, bool quoted) {
  YamlNode node;
  node.kind = YamlNode::Kind::kScalar;
  node.text = std::move(text);
  node.quoted = quoted;
  node.where = where;
  return node;
}

std::string Describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::kNull: return "nothing";
    case YamlNode::Kind::kSequence: return "a list";
    case YamlNode::Kind::kMap: return "a map";
    case YamlNode::Kind::kScalar: break;
  }
  if (node.quoted) return Cat("the text ", Quoted(node.text));
  if (node.text.empty()) return "nothing";
  if (node.text == "true" || node.text == "false") return Cat("the boolean ", node.text);
  const size_t dash = node.text.find_last_of("+-");  // 0-3 is no number
  const bool numeric =
      node.text.find_first_not_of("+-.0123456789eE_") == std::string::npos &&
      node.text.find_first_of("0123456789") != std::string::npos &&
      (dash == std::string::npos || dash == 0 || node.text[dash - 1] == 'e' || node.text[dash - 1] == 'E');
  return numeric ? Cat("the number ", Printable(node.text.substr(0, 60))) : Cat("the text ", Quoted(node.text));
}

}  // namespace planwright
