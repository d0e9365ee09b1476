#include "planner/plan/op_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/state_table.h"
#include "planner/plan/table_text.h"

namespace planwright {
namespace {

using std::string;

constexpr std::string_view kTypeNames[] = {"int", "real", "text", "ints"};

AttributeType TakeType(LineReader& line) {
  for (size_t i = 0; i < std::size(kTypeNames); ++i) {
    if (line.TakeIf(kTypeNames[i])) return static_cast<AttributeType>(i);
  }
  line.Expect(false, "a type: int, real, text or ints");
  return AttributeType();
}

// "NAME TYPE = FORMULA or FORMULA when FORMULA", "NAME TYPE stated" or "NAME TYPE layout|free optional"
AttributeSpec TakeAttribute(LineReader& line) {
  AttributeSpec spec;
  spec.name = line.Take();
  spec.type = TakeType(line);
  if (line.TakeIf("=")) {
    spec.source = AttributeSource::kFormula;
    do {
      spec.values.push_back(line.TakeFormula());
    } while (line.TakeIf("or"));
    if (line.TakeIf("when")) spec.when = line.TakeFormula();
    return spec;
  }
  const string source = line.TakeOneOf({"layout", "stated", "free"});
  spec.source = source == "layout"   ? AttributeSource::kLayout
                : source == "stated" ? AttributeSource::kStated
                                     : AttributeSource::kFree;
  if (spec.source == AttributeSource::kStated) {
    line.Check(spec.type == AttributeType::kInteger || spec.type == AttributeType::kReal, "what is stated is a number");
    spec.optional = true;
    return spec;
  }
  spec.optional = line.TakeIf("optional");
  return spec;
}

// "NAME = FORMULA rounded up"
OpInfo::Size TakeSize(LineReader& line) {
  string name = line.Take();
  line.Need("=");
  OpInfo::Size size = {.name = std::move(name), .value = line.TakeFormula()};
  size.rounded_up = line.TakeIf("rounded");
  if (size.rounded_up) line.Need("up");
  return size;
}

// "NAME = FORMULA, FORMULA, ...", "NAME = weight" or "NAME = passed"
OpInfo::Parts TakeParts(LineReader& line) {
  OpInfo::Parts parts = {.name = line.Take(), .sizes = {}};
  line.Need("=");
  if (line.TakeIf("weight")) return parts;
  if ((parts.passed = line.TakeIf("passed"))) return parts;
  do {
    parts.more = line.TakeIf("...");
    if (!parts.more) parts.sizes.push_back(line.TakeFormula());
  } while (!parts.more && line.TakeIf(','));
  return parts;
}

// "NAME ... = WORD"
OpInfo::Rows TakeRows(LineReader& line) {
  OpInfo::Rows rows = {.names = line.TakeWordsBefore("="), .size = {}};
  rows.size = line.Take();
  return rows;
}

// "partial", "whole" or "cut ATTRIBUTE"
OpInfo::Moves::Form TakeForm(LineReader& line, string& dim) {
  using enum OpInfo::Moves::Form;
  if (line.TakeIf("partial")) return kPartial;
  if (line.TakeIf("whole")) return kWhole;
  line.Need("cut");
  dim = line.Take();
  return kCut;
}

// "FORM -> FORM"
OpInfo::Moves TakeMoves(LineReader& line) {
  OpInfo::Moves moves;
  moves.from = TakeForm(line, moves.dim);
  line.Need("->");
  moves.to = TakeForm(line, moves.dim);
  return moves;
}

// "N -> N" or "N or N -> N"
OpInfo::Values TakeValues(LineReader& line) {
  OpInfo::Values values = {.inputs = {}};
  do {
    values.inputs.push_back(line.TakeNumber());
  } while (line.TakeIf("or"));
  line.Need("->");
  values.outputs = line.TakeNumber();
  return values;
}

// Lines whose text is kept as it is, and lines that are one word, by the field that they set.
constexpr std::pair<std::string_view, string OpInfo::*> kTextLines[] = {
    {"does", &OpInfo::does},         {"names", &OpInfo::names}, {"names_cp", &OpInfo::names_cp},
    {"formulas", &OpInfo::formulas}, {"fast", &OpInfo::fast},
};
constexpr std::pair<std::string_view, bool OpInfo::*> kFlagLines[] = {
    {"counts_on_host", &OpInfo::counts_on_host}, {"keeps_meaning", &OpInfo::keeps_meaning}, {"mixing", &OpInfo::mixing},
    {"elementwise", &OpInfo::elementwise},       {"own_rows", &OpInfo::own_rows},
};

class TableParser {
 public:
  std::vector<OpInfo> Parse() {
#define OP(id, name, op_class, text) Add(OpKind::k##id, name, OpClass::op_class, text);
#include "planner/plan/ops.def"
#undef OP
    BuiltInText(problems_);
    return std::move(table_);
  }

 private:
  void Add(OpKind kind, std::string_view name, OpClass op_class, std::string_view text) {
    OpInfo info = {.kind = kind, .name = name, .op_class = op_class};
    ReadLines(text, Cat("ops.def, entry ", name), problems_, [&](LineReader& line) {
      AddLine(line, info);
      line.NeedEnd();
    });
    table_.push_back(std::move(info));
  }

  void AddLine(LineReader& line, OpInfo& info) {
    const string word = line.Take();
    const auto text = std::find_if(std::begin(kTextLines), std::end(kTextLines),
                                   [&](const auto& known) { return known.first == word; });
    const auto flag = std::find_if(std::begin(kFlagLines), std::end(kFlagLines),
                                   [&](const auto& known) { return known.first == word; });
    if (text != std::end(kTextLines)) {
      info.*(text->second) = line.Rest();
    } else if (flag != std::end(kFlagLines)) {
      info.*(flag->second) = true;
    } else if (word == "operands" || word == "operands_cp") {
      const bool over_cp = word == "operands_cp";
      (over_cp ? info.operands_cp : info.operands) = LineReader(line).Rest();
      (over_cp ? info.signature_cp : info.signature) = TakeSignature(line);
    } else if (word == "values") {
      info.values = TakeValues(line);
    } else if (word == "overwrites") {
      info.overwrites = line.TakeNumber();
    } else if (word == "attribute") {
      info.attributes.push_back(TakeAttribute(line));
    } else if (word == "attributes") {
      AddAttributesOf(line, info);
    } else if (word == "size") {
      info.sizes.push_back(TakeSize(line));
    } else if (word == "parts") {
      info.parts.push_back(TakeParts(line));
    } else if (word == "rows") {
      info.rows.push_back(TakeRows(line));
    } else if (word == "cp_by_features") {
      info.cp_by_features = true;
      LineReader attribute("parameter_cp int = cp when cp > 1");
      info.attributes.push_back(TakeAttribute(attribute));
    } else if (word == "passes_gradient") {
      info.passes_gradient = true;
      while (!line.empty()) info.passing_inputs.push_back(line.TakeNumber());
    } else if (word == "on_one_rank") {
      info.on_one_rank = line.TakeKind();
    } else if (word == "computes_as") {
      info.computes_as = line.TakeKind();
    } else if (word == "transposes" || word == "transposes_cp") {
      info.transposes_texts.push_back(LineReader(line).Rest());
      info.transposes.push_back(TakeGradientRule(line));
      info.transposes.back().over_cp = word == "transposes_cp";
    } else if (word == "meaning" || word == "meaning_cp") {
      const size_t input = line.TakeNumber();
      info.meanings.push_back({input, word == "meaning_cp", line.Rest()});
    } else if (word == "moves") {
      info.moves = TakeMoves(line);
    } else if (word == "published") {
      info.published = line.TakeWords();
    } else if (word == "reads" || word == "writes") {
      info.effects.push_back({line.Take(), word == "writes"});
    } else if (word == "flops") {
      info.flops = line.TakeFormula();
    } else if (word == "workspace") {
      info.workspace = line.TakeFormula();
    } else {
      line.Check(false, "no line of an entry begins with " + Quoted(word));
    }
  }

  // "of NAME". Only earlier entries are parsed by now.
  void AddAttributesOf(LineReader& line, OpInfo& info) {
    line.Need("of");
    const string name = line.Take();
    const auto earlier =
        std::find_if(table_.begin(), table_.end(), [&](const OpInfo& parsed) { return parsed.name == name; });
    line.Check(earlier != table_.end(), "no earlier entry has this name");
    if (line.failed()) return;
    info.attributes = earlier->attributes;
    info.sizes = earlier->sizes;
    info.parts = earlier->parts;
    info.rows = earlier->rows;
    info.cp_by_features = earlier->cp_by_features;
  }

  std::vector<OpInfo> table_;
  TextProblems problems_;
};

// Titles of the page's sections, in the order of OpClass.
constexpr std::string_view kClassTitles[] = {"Control", "Data", "Compute", "Communication", "State", "Storage"};

// The cell "value" of an attribute.
string SourceText(const AttributeSpec& spec) {
  if (spec.source == AttributeSource::kFree) return spec.optional ? "free, may be absent" : "free";
  if (spec.source == AttributeSource::kStated) return "as the statement says; 0 is absent";
  if (spec.source == AttributeSource::kLayout)
    return spec.optional ? "from the layout, may be absent" : "from the layout";
  const auto text = [](string* out, const Expression& formula) { absl::StrAppend(out, "`", formula.text(), "`"); };
  return absl::StrCat(absl::StrJoin(spec.values, " or ", text),
                      spec.when ? absl::StrCat(", when `", spec.when->text(), "`") : "");
}

// "fi = inner`, `fh = heads"
string SizesText(const OpInfo& info) {
  const auto size = [](string* out, const OpInfo::Size& named) {
    absl::StrAppend(out, named.name, " = ", named.value.text(), named.rounded_up ? " rounded up" : "");
  };
  return absl::StrJoin(info.sizes, "`, `", size);
}
// "f = inner | bc"
string PartsText(const OpInfo& info) {
  const auto formula = [](string* out, const Expression& part) { absl::StrAppend(out, part.text()); };
  const auto parts = [&](string* out, const OpInfo::Parts& named) {
    absl::StrAppend(out, named.name, " = ", absl::StrJoin(named.sizes, " | ", formula),
                    named.passed        ? "those of the input"
                    : named.of_weight() ? "those of the weight"
                    : named.more        ? " | others"
                                        : "");
  };
  return absl::StrJoin(info.parts, "`, `", parts);
}

// "P sP = patches`, `R = image_rows"
string RowsText(const OpInfo& info) {
  const auto rows = [](string* out, const OpInfo::Rows& named) {
    absl::StrAppend(out, absl::StrJoin(named.names, " "), " = ", named.size);
  };
  return absl::StrJoin(info.rows, "`, `", rows);
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
  item("sizes", SizesText(info));
  item("parts", PartsText(info));
  item("rows", RowsText(info));
  for (size_t i = 0; i < info.transposes.size(); ++i)
    item(info.transposes[i].over_cp ? "transposes, with cp" : "transposes", info.transposes_texts[i]);
  item("values", ValuesText(info.values));
  if (info.on_one_rank) item("on one rank", string(OpName(*info.on_one_rank)));
  if (info.computes_as) item("computes the same as", string(OpName(*info.computes_as)));
  if (info.overwrites) item("overwrites, if it dies there", absl::StrCat("i", *info.overwrites));
  if (info.flops) item(info.mixing ? "FLOPs, without weights" : "FLOPs", info.flops->text());
  item("fast form on a GPU", info.fast);
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

bool OpInfo::PassesGradient(size_t input) const {
  return passes_gradient && (passing_inputs.empty() ||
                             std::find(passing_inputs.begin(), passing_inputs.end(), input) != passing_inputs.end());
}

bool OpInfo::OnlyMoves() const { return passes_gradient && (!signature || signature->parameters.empty()); }

const std::string* OpInfo::FindRows(std::string_view dim) const {
  for (const Rows& named : rows) {
    if (std::find(named.names.begin(), named.names.end(), dim) != named.names.end()) return &named.size;
  }
  return nullptr;
}

const AttributeSpec* OpInfo::FindAttribute(std::string_view attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const AttributeSpec& spec) { return spec.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

const std::vector<OpInfo>& AllOps() {
  static const std::vector<OpInfo> table = TableParser().Parse();
  return table;
}

const OpSignature* SignatureOf(const Instruction& instruction) {
  const OpInfo& info = InfoOf(instruction.kind);
  const auto& found = instruction.over_cp() && info.signature_cp ? info.signature_cp : info.signature;
  return found ? &*found : nullptr;
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
      "The value of an attribute comes from one of four places. A formula gives it, from the module's constants, the "
      "sizes of its axes, `sequence` (tokens of a sample) and `samples` (of a microbatch on a lane). Or the statement "
      "of the model says it for one compute. Or it follows from the layouts of the operands. Or it is free: it names "
      "something. A plan with another value is refused (V4, V5, V11).",
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
