#include "planner/plan/op_table.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "planner/diagnostics/bug.h"
#include "planner/plan/state_table.h"
#include "planner/plan/table_text.h"

namespace planwright {
namespace {

using std::string;

constexpr std::string_view kTypeNames[] = {"int", "real", "text", "ints"};

AttributeType TypeNamed(const string& name) {
  for (size_t i = 0; i < std::size(kTypeNames); ++i) {
    if (kTypeNames[i] == name) return static_cast<AttributeType>(i);
  }
  Bug("unknown attribute type in ops.def: " + name);
}

// "NAME TYPE = FORMULA or FORMULA when FORMULA", "NAME TYPE layout|free optional"
AttributeSpec ParseAttribute(string rest) {
  AttributeSpec spec;
  if (string when; TakeAfterKeyword("when", rest, when)) spec.when.emplace(when);
  spec.name = TakeWord(rest);
  spec.type = TypeNamed(TakeWord(rest));
  const string source = TakeWord(rest);
  if (source == "=") {
    spec.source = AttributeSource::kFormula;
    for (const string& formula : std::vector<string>(absl::StrSplit(rest, " or "))) spec.values.emplace_back(formula);
    return spec;
  }
  Require(source == "layout" || source == "free", "attribute " + spec.name + " has an unknown source: " + source);
  spec.source = source == "layout" ? AttributeSource::kLayout : AttributeSource::kFree;
  spec.optional = rest == "optional";
  return spec;
}

// "NAME: OPERANDS -> RESULTS". Verify parses the operands, which are its notation.
OpInfo::Transpose ParseTranspose(const string& rest, bool over_cp) {
  const size_t colon = rest.find(':');
  Require(colon != string::npos, "a line `transposes` has no operands: " + rest);
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
  Require(text.empty() && (word == "partial" || word == "whole"), "a line `moves` has an unknown form: " + word);
  return word == "partial" ? kPartial : kWhole;
}

// "FORM -> FORM"
OpInfo::Moves ParseMoves(const string& rest) {
  const std::vector<string> forms = absl::StrSplit(rest, " -> ");
  Require(forms.size() == 2, "a line `moves` is not FORM -> FORM: " + rest);
  OpInfo::Moves moves;
  moves.from = ParseForm(forms[0], moves.dim);
  moves.to = ParseForm(forms[1], moves.dim);
  return moves;
}

// One digit.
size_t CountOf(const string& word) {
  Require(word.size() == 1 && absl::ascii_isdigit(static_cast<unsigned char>(word[0])), "not one digit: " + word);
  return static_cast<size_t>(word[0] - '0');
}

// "N -> N" or "N or N -> N"
OpInfo::Values ParseValues(const string& rest) {
  const std::vector<string> sides = absl::StrSplit(rest, " -> ");
  Require(sides.size() == 2, "a line `values` is not N -> N: " + rest);
  OpInfo::Values values = {.inputs = {}, .outputs = CountOf(sides[1])};
  for (const string& count : std::vector<string>(absl::StrSplit(sides[0], " or ")))
    values.inputs.push_back(CountOf(count));
  return values;
}

// Lines whose text is kept as it is, and lines that are one word, by the field that they set.
constexpr std::pair<std::string_view, string OpInfo::*> kTextLines[] = {
    {"does", &OpInfo::does},         {"names", &OpInfo::names},       {"names_cp", &OpInfo::names_cp},
    {"formulas", &OpInfo::formulas}, {"operands", &OpInfo::operands}, {"operands_cp", &OpInfo::operands_cp},
};
constexpr std::pair<std::string_view, bool OpInfo::*> kFlagLines[] = {
    {"counts_on_host", &OpInfo::counts_on_host},
    {"passes_gradient", &OpInfo::passes_gradient},
    {"keeps_meaning", &OpInfo::keeps_meaning},
    {"own_rows", &OpInfo::own_rows},
};

class TableParser {
 public:
  std::vector<OpInfo> Parse() {
#define OP(id, name, op_class, text) Add(OpKind::k##id, name, OpClass::op_class, text);
#include "planner/plan/ops.def"
#undef OP
    return std::move(table_);
  }

 private:
  void Add(OpKind kind, std::string_view name, OpClass op_class, std::string_view text) {
    OpInfo info = {.kind = kind, .name = name, .op_class = op_class};
    for (string& line : LogicalLines(text)) {
      const string word = TakeWord(line);
      AddLine(word, std::move(line), info);
    }
    table_.push_back(std::move(info));
  }

  // `word` begins the line, `rest` follows it. An unknown word is a misspelling in ops.def: every program stops at it.
  void AddLine(const string& word, string rest, OpInfo& info) {
    const auto text = std::find_if(std::begin(kTextLines), std::end(kTextLines),
                                   [&](const auto& line) { return line.first == word; });
    const auto flag = std::find_if(std::begin(kFlagLines), std::end(kFlagLines),
                                   [&](const auto& line) { return line.first == word; });
    if (text != std::end(kTextLines)) {
      info.*(text->second) = rest;
    } else if (flag != std::end(kFlagLines)) {
      info.*(flag->second) = true;
    } else if (word == "values") {
      info.values = ParseValues(rest);
    } else if (word == "overwrites") {
      info.overwrites = CountOf(rest);
    } else if (word == "attribute") {
      info.attributes.push_back(ParseAttribute(rest));
    } else if (word == "attributes") {
      info.attributes = AttributesOfEarlier(rest);
    } else if (word == "transposes" || word == "transposes_cp") {
      info.transposes.push_back(ParseTranspose(rest, word == "transposes_cp"));
    } else if (word == "meaning" || word == "meaning_cp") {
      const size_t input = std::strtoul(TakeWord(rest).c_str(), nullptr, 10);
      info.meanings.push_back({input, word == "meaning_cp", rest});
    } else if (word == "moves") {
      info.moves = ParseMoves(rest);
    } else if (word == "published") {
      info.published = absl::StrSplit(rest, ' ');
    } else if (word == "reads" || word == "writes") {
      info.effects.push_back({rest, word == "writes"});
    } else if (word == "flops") {
      info.flops.emplace(rest);
    } else if (word == "workspace") {
      info.workspace.emplace(rest);
    } else {
      Bug("the entry " + string(info.name) + " of ops.def has a line that begins with " + word);
    }
  }

  // "of NAME": the attributes of that kind. Only earlier entries are parsed by now.
  const std::vector<AttributeSpec>& AttributesOfEarlier(string rest) {
    Require(TakeWord(rest) == "of", "a line `attributes` is not `attributes of NAME`");
    const auto earlier =
        std::find_if(table_.begin(), table_.end(), [&](const OpInfo& parsed) { return parsed.name == rest; });
    Require(earlier != table_.end(), "`attributes of` names a kind that no earlier entry has: " + rest);
    return earlier->attributes;
  }

  std::vector<OpInfo> table_;
};

// Titles of the page's sections, in the order of OpClass.
constexpr std::string_view kClassTitles[] = {"Control", "Data", "Compute", "Communication", "State", "Storage"};

// The cell "value" of an attribute.
string SourceText(const AttributeSpec& spec) {
  if (spec.source == AttributeSource::kFree) return spec.optional ? "free, may be absent" : "free";
  if (spec.source == AttributeSource::kLayout)
    return spec.optional ? "from the layout, may be absent" : "from the layout";
  const auto text = [](string* out, const Expression& formula) { absl::StrAppend(out, "`", formula.text(), "`"); };
  return absl::StrCat(absl::StrJoin(spec.values, " or ", text),
                      spec.when ? absl::StrCat(", when `", spec.when->text(), "`") : "");
}

string ValuesText(const OpInfo::Values& values) {
  if (values.inputs == std::vector<size_t>{0} && values.outputs == 0) return "";
  return absl::StrCat(absl::StrJoin(values.inputs, " or "), " -> ", values.outputs);
}

// The section of one kind: what it does, a list of its lines, and a table of its attributes.
void AppendReference(const OpInfo& info, string& page) {
  absl::StrAppend(&page, "\n### ", string(info.name), "\n\n");
  AppendWrapped(info.does, "", page);
  bool first = true;
  const auto item = [&](const char* title, const string& code) {
    if (code.empty()) return;
    if (first) page += "\n";
    first = false;
    AppendWrapped(absl::StrCat("- ", title, ": `", code, "`"), "  ", page);
  };
  item("names", info.names);
  item("names with cp", info.names_cp);
  item("operands", info.operands);
  item("operands with cp", info.operands_cp);
  for (const OpInfo::Transpose& transpose : info.transposes) {
    item(transpose.over_cp ? "transposes, with cp" : "transposes",
         absl::StrCat(transpose.forward, ":", transpose.operands));
  }
  item("values", ValuesText(info.values));
  if (info.overwrites) item("overwrites, if it dies there", absl::StrCat("i", *info.overwrites));
  if (info.flops) item("FLOPs", info.flops->text());
  if (info.workspace) item("workspace in bf16 on a GPU, bytes", info.workspace->text());
  item("stands in the lists", ListsOf(info.kind));
  for (const StateEffect& effect : info.effects) item(effect.writes ? "writes" : "reads", effect.resource);
  if (!info.formulas.empty()) {
    const std::string_view link = std::string_view(info.formulas).substr(std::string_view("docs/").size());
    absl::StrAppend(&page, first ? "\n" : "", "- formulas: [", string(link), "](", string(link), ")\n");
  }
  if (info.attributes.empty()) return;
  page += "\n| attribute | type | value |\n|---|---|---|\n";
  for (const AttributeSpec& spec : info.attributes) {
    absl::StrAppend(&page, "| ", spec.name, " | ", string(AttributeTypeName(spec.type)), " | ", SourceText(spec),
                    " |\n");
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
  static const std::vector<OpInfo> table = TableParser().Parse();
  return table;
}

const OpInfo& InfoOf(OpKind kind) { return AllOps()[static_cast<size_t>(kind)]; }

string OperationsReference() {
  string page = "# Operations\n\n";
  AppendWrapped(
      "Every kind of instruction. This page is made from the table `planner/plan/ops.def`, whose head explains the "
      "notation, with examples. `names` shows the operands for people: inputs, parameters that are read, parameters "
      "whose gradient is added to, and outputs. `operands` is the same in index notation, for the rules of `verify`.",
      "", page);
  page += "\n";
  AppendWrapped(
      "The value of an attribute comes from one of three places. A formula gives it, from the module's constants, the "
      "sizes of its axes, `sequence` (tokens of a sample) and `samples` (of a microbatch on a lane). Or it follows "
      "from "
      "the layouts of the operands. Or it is free: it names something. A plan with another value is refused (V4).",
      "", page);
  for (size_t i = 0; i < std::size(kClassTitles); ++i) {
    absl::StrAppend(&page, "\n## ", string(kClassTitles[i]), "\n");
    for (const OpInfo& info : AllOps()) {
      if (info.op_class == static_cast<OpClass>(i)) AppendReference(info, page);
    }
  }
  return page + StatesReference();
}

}  // namespace planwright
