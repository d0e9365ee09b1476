#include "planner/plan/op_table.h"

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"

namespace planwright {
namespace {

using std::string;

constexpr std::string_view kTypeNames[] = {"int", "real", "text", "ints"};

// The first word of `rest`, taken off it.
string TakeWord(string& rest) {
  const size_t end = std::min(rest.find(' '), rest.size());
  string word = rest.substr(0, end);
  rest = string(absl::StripAsciiWhitespace(rest.substr(end)));
  return word;
}

// What stands behind a word of `rest`, taken off it with the word; none if the word is not there.
std::optional<string> TakeBehind(const char* word, string& rest) {
  const string mark = absl::StrCat(" ", word, " ");
  const size_t at = rest.find(mark);
  if (at == string::npos) return std::nullopt;
  string behind = rest.substr(at + mark.size());
  rest.resize(at);
  return behind;
}

AttributeType TypeNamed(const string& name) {
  for (size_t i = 0; i < std::size(kTypeNames); ++i) {
    if (kTypeNames[i] == name) return static_cast<AttributeType>(i);
  }
  Bug("no type of attributes: " + name);
}

// "NAME TYPE = FORMULA or FORMULA when FORMULA runs NUMBER", "NAME TYPE layout|free optional runs NUMBER"
AttributeSpec ParseAttribute(string rest) {
  AttributeSpec spec;
  if (const auto runs = TakeBehind("runs", rest)) spec.runs = std::strtod(runs->c_str(), nullptr);
  if (const auto when = TakeBehind("when", rest)) spec.when.emplace(*when);
  spec.name = TakeWord(rest);
  spec.type = TypeNamed(TakeWord(rest));
  const string source = TakeWord(rest);
  if (source == "=") {
    spec.source = AttributeSource::kFormula;
    for (const string& formula : std::vector<string>(absl::StrSplit(rest, " or "))) spec.values.emplace_back(formula);
    return spec;
  }
  Require(source == "layout" || source == "free", "source of attribute " + spec.name + ": " + source);
  spec.source = source == "layout" ? AttributeSource::kLayout : AttributeSource::kFree;
  spec.optional = rest == "optional";
  return spec;
}

OpInfo::Transpose ParseTranspose(const string& rest, bool over_cp) {
  const size_t colon = rest.find(':');
  Require(colon != string::npos, "transposes without operands: " + rest);
  return {rest.substr(0, colon), rest.substr(colon + 1), over_cp};
}

// "partial", "whole" or "cut ATTRIBUTE"
OpInfo::Moves::Form ParseForm(string text, string& dim) {
  using enum OpInfo::Moves::Form;
  const string word = TakeWord(text);
  if (word == "cut") {
    dim = text;
    return kCut;
  }
  Require(text.empty() && (word == "partial" || word == "whole"), "moves a value that is " + word);
  return word == "partial" ? kPartial : kWhole;
}

// "FORM -> FORM"
OpInfo::Moves ParseMoves(const string& rest) {
  const std::vector<string> forms = absl::StrSplit(rest, " -> ");
  Require(forms.size() == 2, "moves: " + rest);
  OpInfo::Moves moves;
  moves.from = ParseForm(forms[0], moves.dim);
  moves.to = ParseForm(forms[1], moves.dim);
  return moves;
}

size_t CountOf(const string& word) {
  Require(word.size() == 1 && absl::ascii_isdigit(static_cast<unsigned char>(word[0])), "a number of values: " + word);
  return static_cast<size_t>(word[0] - '0');
}

// "N -> N" or "N or N -> N"
OpInfo::Values ParseValues(const string& rest) {
  const std::vector<string> sides = absl::StrSplit(rest, " -> ");
  Require(sides.size() == 2, "values: " + rest);
  OpInfo::Values values = {.inputs = {}, .outputs = CountOf(sides[1])};
  for (const string& count : std::vector<string>(absl::StrSplit(sides[0], " or ")))
    values.inputs.push_back(CountOf(count));
  return values;
}

class TableMaker {
 public:
  // What every kind says of itself; then those that are like another's.
  std::vector<OpInfo> Make() {
#define OP(id, name, op_class, text) Add(OpKind::k##id, name, OpClass::op_class, false, text);
#define OP_PLANNED(id, name, op_class, text) Add(OpKind::k##id, name, OpClass::op_class, true, text);
#include "planner/plan/ops.def"
#undef OP_PLANNED
#undef OP
    return std::move(table_);
  }

 private:
  void Add(OpKind kind, std::string_view name, OpClass op_class, bool planned, std::string_view text) {
    OpInfo info = {.kind = kind, .name = name, .op_class = op_class, .planned = planned};
    for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
      string rest(absl::StripAsciiWhitespace(line));
      if (rest.empty()) continue;
      const string word = TakeWord(rest);
      AddLine(word, std::move(rest), info);
    }
    table_.push_back(std::move(info));
  }

  void AddLine(const string& word, string rest, OpInfo& info) {
    if (word == "does") {
      absl::StrAppend(&info.does, info.does.empty() ? "" : " ", rest);
    } else if (word == "operands") {
      info.operands = rest;
    } else if (word == "operands_cp") {
      info.operands_cp = rest;
    } else if (word == "values") {
      info.values = ParseValues(rest);
    } else if (word == "counts_on_host") {
      info.counts_on_host = true;
    } else if (word == "attribute") {
      info.attributes.push_back(ParseAttribute(rest));
    } else if (word == "attributes") {
      Require(TakeWord(rest) == "of", "attributes of which kind?");
      const auto other =
          std::find_if(table_.begin(), table_.end(), [&](const OpInfo& made) { return made.name == rest; });
      Require(other != table_.end(), "attributes of a kind that does not stand before: " + rest);
      info.attributes = other->attributes;
    } else if (word == "transposes" || word == "transposes_cp") {
      info.transposes.push_back(ParseTranspose(rest, word == "transposes_cp"));
    } else if (word == "meaning" || word == "meaning_cp") {
      const size_t place = std::strtoul(TakeWord(rest).c_str(), nullptr, 10);
      info.meanings.push_back({place, word == "meaning_cp", rest});
    } else if (word == "moves") {
      info.moves = ParseMoves(rest);
    } else if (word == "published") {
      info.published = absl::StrSplit(rest, ' ');
    } else if (word == "reads" || word == "writes") {
      info.effects.push_back({rest, word == "writes"});
    } else if (word == "flops") {
      info.flops.emplace(rest);
    } else if (word == "passes_gradient") {
      info.passes_gradient = true;
    } else if (word == "keeps_meaning") {
      info.keeps_meaning = true;
    } else if (word == "own_rows") {
      info.own_rows = true;
    } else {
      Bug("ops.def says " + word + " of " + string(info.name));
    }
  }

  std::vector<OpInfo> table_;
};

constexpr std::string_view kClassTitles[] = {"Control", "Data", "Compute", "Communication", "State"};

string SourceText(const AttributeSpec& spec) {
  if (spec.source == AttributeSource::kFree) return spec.optional ? "free, may be absent" : "free";
  if (spec.source == AttributeSource::kLayout)
    return spec.optional ? "from the layout, may be absent" : "from the layout";
  const auto text = [](string* out, const Expression& formula) { absl::StrAppend(out, "`", formula.text(), "`"); };
  return absl::StrCat(absl::StrJoin(spec.values, " or ", text),
                      spec.when ? absl::StrCat(", when `", spec.when->text(), "`") : "");
}

// The notation's bars would end a table's cell.
string Cell(string text) {
  string cell;
  for (char c : text) {
    if (c == '|') cell += '\\';
    cell += c;
  }
  return cell;
}

void AppendReference(const OpInfo& info, string& page) {
  absl::StrAppend(&page, "\n### ", string(info.name), "\n\n", Cell(info.does), "\n");
  if (info.planned) absl::StrAppend(&page, "\nPlanned and proved; this version's executor does not run it.\n");
  const auto line = [&](const char* title, const string& text) {
    if (!text.empty()) absl::StrAppend(&page, "\n- ", title, ": `", text, "`");
  };
  const size_t before = page.size();
  line("operands", info.operands);
  line("operands with cp", info.operands_cp);
  for (const OpInfo::Transpose& transpose : info.transposes) {
    line(transpose.over_cp ? "transposes, with cp" : "transposes",
         absl::StrCat(transpose.forward, ":", transpose.operands));
  }
  if (info.values.inputs != std::vector<size_t>{0} || info.values.outputs > 0) {
    line("values", absl::StrCat(absl::StrJoin(info.values.inputs, " or "), " -> ", info.values.outputs));
  }
  if (info.flops) line("FLOPs", info.flops->text());
  for (const StateEffect& effect : info.effects) line(effect.writes ? "writes" : "reads", effect.resource);
  if (page.size() > before) page += "\n";
  if (info.attributes.empty()) return;
  page += "\n| attribute | type | value |\n|---|---|---|\n";
  for (const AttributeSpec& spec : info.attributes) {
    absl::StrAppend(&page, "| ", spec.name, " | ", string(AttributeTypeName(spec.type)), " | ", SourceText(spec),
                    spec.runs ? absl::StrCat("; the executor runs ", *spec.runs) : "", " |\n");
  }
}

}  // namespace

std::string_view AttributeTypeName(AttributeType type) { return kTypeNames[static_cast<int>(type)]; }

const AttributeSpec* OpInfo::FindAttribute(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const AttributeSpec& spec) { return spec.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

const std::vector<OpInfo>& AllOps() {
  static const std::vector<OpInfo> table = TableMaker().Make();
  return table;
}

const OpInfo& InfoOf(OpKind kind) { return AllOps()[static_cast<size_t>(kind)]; }

string OperationsReference() {
  string page =
      "# Operations\n\nEvery kind of instruction, from the table `planner/plan/ops.def`, whose head explains words and "
      "notation. An attribute has the "
      "value of its formula, over the module's constants, the sizes of its axes, `sequence` and `samples` of a "
      "microbatch on a lane; or it follows from "
      "the layouts of the operands; or it is free to name something. A plan with another value is refused (V4).\n";
  for (size_t i = 0; i < std::size(kClassTitles); ++i) {
    absl::StrAppend(&page, "\n## ", string(kClassTitles[i]), "\n");
    for (const OpInfo& info : AllOps()) {
      if (info.op_class == static_cast<OpClass>(i)) AppendReference(info, page);
    }
  }
  return page;
}

}  // namespace planwright
