// What ops.def says may be cut, cut. For every compute kind and every index that an axis may cut, the handler runs on
// 2, 3 and 4 parts of the operands, at the coordinates of the axis. The parts must make up what it makes of the whole:
// an output with the index is cut in the same way, an output without it is a sum of terms. And where an operand may be
// a term of a sum (mark +), the outputs are terms too.
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "executor/base/zigzag.h"
#include "planner/plan/op_table.h"
#include "tests/executor/ops/op_cases.h"
#include "tests/executor/ops/op_cut.h"

namespace planwright::executor::cut_test {
namespace {

using namespace op_cases;
using std::string;

// Kinds whose operands have no index notation: they are the cut.
const std::set<string> kSlices = {"local_slice", "slice_rows"};

// A + that says something else than that the kind is linear.
const std::set<string> kNotLinear = {
    "cross_entropy_sums",  // each rank reads its own parts, which are never added up, and makes a term
};

// Terms of these are terms of all inputs together, which are not repeated operands.
const std::set<string> kTakesTermsTogether = {"add_linear", "join_features", "split_features_grad"};

// Causal and packed attention: without cp, inputs 0 and 1 of the form with cp are one input, joined along features.
bool IsJoinedWithoutCp(const string& kind) { return kind == "causal_attention" || kind == "packed_attention"; }

// Those that may be cut.
std::set<char> IndicesOf(const OpSignature& signature) {
  std::set<char> indices;
  for (const auto* list : {&signature.inputs, &signature.parameters, &signature.gradients, &signature.outputs}) {
    for (const OperandSignature& operand : *list) {
      // Row counts are a rank's own, in as many dims as they like. Other leading dims are two in these cases.
      if (operand.leading && !operand.of_rank) indices.insert({'0', '1'});
      for (const SignatureDim& dim : operand.dims) {
        if (dim.index >= 'a' && dim.index <= 'z') indices.insert(dim.index);
      }
    }
  }
  return indices;
}

bool HasIndex(const std::vector<OperandSignature>& list, char index) {
  return std::any_of(list.begin(), list.end(), [&](const OperandSignature& operand) {
    return (operand.leading && absl::ascii_isdigit(static_cast<unsigned char>(index))) ||
           std::any_of(operand.dims.begin(), operand.dims.end(),
                       [&](const SignatureDim& dim) { return dim.index == index; });
  });
}

// Whether plans may cut the index over the axis, in this form of the kind.
bool AxisCuts(const Entry& entry, bool over_cp, char index, Axis axis) {
  // What finds its part of the vocabulary, or its key head, by the tp coordinate is cut there and nowhere else over tp.
  const auto by_coordinate = [](char each) { return each == 'v' || each == 'h'; };
  if (axis == Axis::kTp) {
    const std::set<char> indices = IndicesOf(entry.signature(over_cp));
    return by_coordinate(index) || (index != 's' && std::none_of(indices.begin(), indices.end(), by_coordinate));
  }
  if (by_coordinate(index)) return false;
  const OpInfo& info = InfoOf(entry.kind);
  // With these attributes the kind has a part of the positions, or of the features, and of nothing else.
  if (info.FindAttribute("cp")) return index == 's' || (!over_cp && index == 't');
  if (info.FindAttribute("parameter_cp")) return index == 'f';
  // Along cp no weight is cut.
  const OpSignature& signature = entry.signature(over_cp);
  return !HasIndex(signature.parameters, index) && !HasIndex(signature.gradients, index);
}

// --- What is run.

std::vector<string> NamesOf(const char* prefix, const Named& values, size_t stage) {
  std::vector<string> names;
  for (size_t i = 0; values.contains(absl::StrCat(stage, ".", prefix, i)); ++i)
    names.push_back(absl::StrCat(stage, ".", prefix, i));
  return names;
}

// The values of a case by the names of the form with cp. `queries`: features of input 0 in that form.
Named InFormWithCp(const OpCase& c, const Named& values, int64_t queries) {
  if (!IsJoinedWithoutCp(c.stages[0].kind)) return values;
  Named made;
  for (const auto& [name, value] : values) {
    const size_t at = name.find('i');
    if (at == string::npos) {
      made[name] = value;
    } else if (name[at + 1] == '0') {
      made[name] = value.narrow(-1, 0, queries);
      made[string(name).replace(at + 1, 1, "1")] = value.narrow(-1, queries, value.size(-1) - queries);
    } else {
      made[string(name).replace(at + 1, 1, string(1, static_cast<char>(name[at + 1] + 1)))] = value;
    }
  }
  return made;
}

// Every instruction of a case: its forward kinds, and their backward kinds as the table wires them. `with_cp`: a case
// of the plain form, whose operands are named and split as in the form with cp.
std::vector<Instance> InstancesOf(const Table& table, const OpCase& c, bool with_cp) {
  Named values = RunForward(table, c, FreshOperands(table, c));
  std::vector<Wiring> backward = BackwardOf(table, c);
  AddCotangents(c, backward, values);
  const bool over_cp = with_cp || c.cp > 1;
  const int64_t queries = with_cp ? values.at("0.o0").size(-1) : 0;  // attention: as wide as what it makes of them
  const Named forward = with_cp ? InFormWithCp(c, values, queries) : values;
  std::vector<Instance> all;
  const auto add = [&](const Entry& entry) -> Instance& {
    Instance& instance = all.emplace_back();
    instance.c = &c, instance.entry = &entry, instance.over_cp = over_cp;
    instance.signature = entry.signature(over_cp);
    return instance;
  };
  for (size_t k = 0; k < c.stages.size(); ++k) {
    Instance& instance = add(table[c.stages[k].kind]);
    instance.inputs = Of(forward, NamesOf("i", forward, k));
    instance.parameters = Of(forward, NamesOf("p", forward, k));
    instance.outputs = Of(forward, NamesOf("o", forward, k));
  }
  for (const Wiring& wiring : backward) {
    const Gradients made = RunBackward(c, wiring, values);
    Named results = forward;
    Named named;
    for (size_t i = 0; i < made.results.size(); ++i) named[wiring.results.at(i)] = made.results[i];
    if (with_cp) named = InFormWithCp(c, named, queries);
    results.insert(named.begin(), named.end());
    std::vector<string> operands = wiring.operands, outputs = wiring.results;
    if (with_cp) {
      for (const Entry::Transpose& line : wiring.entry->transposes) {
        const auto over_cp_names = NamesIn(c, line);
        if (!line.over_cp || !over_cp_names) continue;
        operands.clear();
        for (const string& name : over_cp_names->operands) {
          if (results.contains(name)) operands.push_back(name);  // not so document_ends, if there are none
        }
        outputs = over_cp_names->results;
      }
    }
    Instance& instance = add(*wiring.entry);
    instance.inputs = Of(results, operands);
    instance.parameters = Of(results, wiring.parameters);
    instance.outputs = Of(results, outputs);
    for (string name : wiring.gradients) instance.gradients.push_back(values.at(name.erase(name.find('d'), 1)));
    instance.added = made.added;
  }
  return all;
}

// "linear i over tp"
string NameOf(const Entry& entry, bool over_cp, char index, Axis axis) {
  return absl::StrCat(entry.name, over_cp ? " with cp " : " ", string(1, index), " over ", string(AxisName(axis)));
}

bool HasBias(const OpCase& c) { return c.stages[0].kind == "linear" && c.values.contains("0.p1"); }

struct Covered {
  std::map<string, std::set<int>> cuts;  // by name: numbers of parts
  std::set<string> terms;                // "linear 0": inputs with a mark +
  int runs = 0;
};

// Input by input, a term of a sum in place of the sum: outputs and gradients must be terms, too.
void AddTermProblems(const Instance& whole, std::vector<string>& problems, Covered* covered) {
  const string& kind = whole.entry->name;
  if (kNotLinear.contains(kind) || (kind == "linear" && HasBias(*whole.c))) return;
  const OpCase& c = *whole.c;
  const RankCoordinates rank = {.cp = c.cp, .cp_rank = c.cp_rank, .ep = c.ep, .ep_rank = c.ep_rank};
  for (size_t at = 0; at < whole.inputs.size(); ++at) {
    const OperandSignature& operand = *OperandAt(whole.signature.inputs, at);
    const bool named = kTakesTermsTogether.contains(kind), together = operand.repeats || named;
    if (covered && named) covered->terms.insert(absl::StrCat(kind, " ", at));
    if (!operand.linear || (together && at > 0)) continue;
    if (kind == "linear_weight_grad" && at == 1 && HasBias(c)) continue;  // as in Problems below
    // What adds, joins or splits takes terms of all its inputs together.
    const size_t end = together ? whole.inputs.size() : at + 1;
    if (covered) covered->terms.insert(absl::StrCat(kind, whole.over_cp ? " with cp " : " ", at));
    Tensors first = whole.inputs, second = whole.inputs;
    for (size_t i = at; i < end; ++i) {
      first[i] = at::randn(whole.inputs[i].sizes(), at::kDouble);
      second[i] = whole.inputs[i] - first[i];
    }
    Tensors buffers;
    for (const at::Tensor& gradient : whole.gradients) buffers.push_back(gradient.clone().fill_(0.5));
    const auto run = [&](const Tensors& inputs) {
      return RunKind(*whole.entry, c.attributes, rank, inputs, whole.parameters, buffers, whole.outputs);
    };
    const Tensors a = run(first), b = run(second);
    const auto check = [&](const at::Tensor& sum, const at::Tensor& wanted, const string& what) {
      if (sum.numel() == 0) return;
      const double gap = (sum - wanted).abs().max().item<double>();
      // Terms may be larger than their sum.
      if (gap <= 10 * kAllowed * (1 + wanted.abs().max().item<double>())) return;
      problems.push_back(
          absl::StrCat(kind, " (", c.name, ") is not linear in input ", at, ": ", what, " is off by ", gap));
    };
    for (size_t i = 0; i < whole.outputs.size(); ++i) check(a[i] + b[i], whole.outputs[i], absl::StrCat("output ", i));
    for (size_t i = 0; i < buffers.size(); ++i) check(buffers[i] - 0.5, whole.added[i], absl::StrCat("gradient ", i));
  }
}

// What is wrong with the cuts of one case. `kind`: of this kind only; "": of all.
std::vector<string> Problems(const Table& table, const OpCase& c, const string& kind, Covered* covered = nullptr) {
  std::vector<string> problems;
  const auto cut = [&](const Instance& instance, Axis axis) {
    if (!kind.empty() && instance.entry->name != kind) return;
    for (char index : IndicesOf(instance.signature)) {
      if (!AxisCuts(*instance.entry, instance.over_cp, index, axis)) continue;
      // A bias would be in every term: rule V4 refuses the linear, and with it its backward.
      if (absl::StartsWith(instance.entry->name, "linear") && HasBias(c) && index == 'i') continue;
      for (int parts : c.parts) {
        const std::optional<string> problem = CutProblem(table, instance, index, axis, parts);
        if (!problem) continue;
        const string name = NameOf(*instance.entry, instance.over_cp, index, axis);
        if (covered) covered->cuts[name].insert(parts), ++covered->runs;
        if (!problem->empty())
          problems.push_back(absl::StrCat(name, " in ", parts, " parts (", c.name, "): ", *problem));
      }
    }
  };
  // A case with cp is one coordinate of it: only tp cuts it further.
  for (const Instance& instance : InstancesOf(table, c, false)) {
    const bool positions = InfoOf(instance.entry->kind).FindAttribute("cp") && !instance.entry->operands_cp.empty();
    if (!c.cut_over_cp_only) cut(instance, Axis::kTp);
    if (!c.cut_over_cp_only && (kind.empty() || kind == instance.entry->name))
      AddTermProblems(instance, problems, covered);
    if (c.cp == 1 && !positions) cut(instance, Axis::kCp);
  }
  if (c.cp > 1) return problems;
  for (const Instance& instance : InstancesOf(table, c, true)) {
    if (!instance.entry->operands_cp.empty()) cut(instance, Axis::kCp);
  }
  return problems;
}

class Cuts : public testing::Test {
 protected:
  const Table table_ = OpsTable();
};

TEST_F(Cuts, PartsMakeUpTheWhole) {
  Covered covered;
  for (const OpCase& c : Cases()) {
    for (const string& problem : Problems(table_, c, "", &covered)) ADD_FAILURE() << problem;
  }
  size_t kinds = 0, indices = 0, cuts = 0, terms = 0;
  for (const Entry& entry : table_.entries) {
    if (entry.operands.empty()) {
      EXPECT_TRUE(kSlices.contains(entry.name)) << entry.name << " has no line operands";
      continue;
    }
    bool any = false;
    for (const bool over_cp : {false, true}) {
      if (over_cp && entry.operands_cp.empty()) continue;
      const std::vector<OperandSignature>& inputs = entry.signature(over_cp).inputs;
      for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i].linear || kNotLinear.contains(entry.name)) continue;
        EXPECT_TRUE(covered.terms.contains(absl::StrCat(entry.name, over_cp ? " with cp " : " ", i)))
            << "no case in op_cases.cc runs " << entry.name << " on a term of input " << i;
        ++terms;
      }
      for (char index : IndicesOf(entry.signature(over_cp))) {
        bool is_cut = false;
        for (Axis axis : {Axis::kTp, Axis::kCp}) {
          if (!AxisCuts(entry, over_cp, index, axis)) continue;
          const string name = NameOf(entry, over_cp, index, axis);
          for (int parts : {2, 3})
            EXPECT_TRUE(covered.cuts[name].contains(parts))
                << "no case in op_cases.cc cuts " << name << " in " << parts;
          is_cut = true, ++cuts;
        }
        EXPECT_TRUE(is_cut) << "no axis cuts the index " << index << " of " << entry.name;
        any = true, ++indices;
      }
    }
    kinds += any ? 1 : 0;
  }
  std::cout << "cut test: " << kinds << " of " << table_.entries.size() << " compute kinds have " << indices
            << " indices that may be cut, " << cuts << " with their axes; " << covered.runs << " cuts; " << terms
            << " inputs that may be terms\n";
}

// The cases in which a kind is run, where its operands are small.
std::vector<const OpCase*> CasesOf(const Table& table, const string& kind) {
  std::vector<const OpCase*> cases;
  for (const OpCase& c : Cases()) {
    const bool forward =
        std::any_of(c.stages.begin(), c.stages.end(), [&](const OpCase::Stage& stage) { return stage.kind == kind; });
    const std::vector<Entry::Transpose>& lines = table[kind].transposes;
    const bool backward = std::any_of(lines.begin(), lines.end(),
                                      [&](const Entry::Transpose& line) { return NamesIn(c, line).has_value(); });
    if ((forward || backward) && !c.cut_over_cp_only) cases.push_back(&c);
  }
  return cases;
}

// Whether some case of the kind shows that the table is wrong.
bool IsNoticed(const Table& mutant, const string& kind) {
  const std::vector<const OpCase*> cases = CasesOf(mutant, kind);
  return std::any_of(cases.begin(), cases.end(), [&](const OpCase* c) { return !Problems(mutant, *c, kind).empty(); });
}

// A handler that looks at a coordinate although its operands are whole would be wrong wherever an axis cuts none of
// them.
TEST_F(Cuts, CoordinatesSayNothingOfWholeOperands) {
  const std::set<string> by_tp_coordinate = {
      "embed_tokens",
      "embed_tokens_grad",
      "cross_entropy_parts",
      "cross_entropy_grad",  // index v: always cut over tp
      "causal_attention_all_kv",
      "causal_attention_all_kv_grad",  // index h, likewise
      "routing_fingerprint",           // its tokens are cut over tp wherever tp is above 1
  };
  std::set<string> differ;
  for (const OpCase& c : Cases()) {
    if (c.cp > 1 || c.cut_over_cp_only) continue;
    for (const Instance& whole : InstancesOf(table_, c, false)) {
      for (const RankCoordinates& rank : {RankCoordinates{.tp = 2, .tp_rank = 1, .ep = c.ep, .ep_rank = c.ep_rank},
                                          RankCoordinates{.cp = 2, .cp_rank = 1, .ep = c.ep, .ep_rank = c.ep_rank}}) {
        Tensors buffers;
        for (const at::Tensor& gradient : whole.gradients) buffers.push_back(gradient.clone().fill_(0.5));
        Tensors made =
            RunKind(*whole.entry, c.attributes, rank, whole.inputs, whole.parameters, buffers, whole.outputs);
        bool same = true;
        for (size_t i = 0; i < made.size(); ++i) same = same && made[i].equal(whole.outputs[i]);
        for (size_t i = 0; i < buffers.size(); ++i) same = same && (buffers[i] - 0.5).equal(whole.added[i]);
        if (same) continue;
        EXPECT_EQ(rank.cp, 1) << whole.name() << " looks at its cp coordinate";
        differ.insert(whole.entry->name);
      }
    }
  }
  EXPECT_EQ(differ, by_tp_coordinate);
}

// The kinds without index notation.
TEST_F(Cuts, SlicesAreTheParts) {
  const at::Tensor x = at::arange(96, at::kDouble).view({24, 4});
  for (const int parts : {2, 3}) {
    const at::Tensor counts = at::arange(1, parts + 1, at::kLong);
    const int64_t rows = counts.sum().item<int64_t>();
    Tensors over_tp, over_cp, by_counts;
    for (int r = 0; r < parts; ++r) {
      const auto run = [&](const char* kind, const Attributes& attributes, const RankCoordinates& rank,
                           const Tensors& inputs) {
        return RunKind(table_[kind], attributes, rank, inputs, {}, {}, {})[0];
      };
      const RankCoordinates tp = {.tp = parts, .tp_rank = r}, cp = {.cp = parts, .cp_rank = r};
      over_tp.push_back(run("local_slice", {{"dim", int64_t{0}}}, tp, {x}));
      over_cp.push_back(run("local_slice", {{"dim", int64_t{0}}, {"axis", string("cp")}}, cp, {x}));
      by_counts.push_back(run("slice_rows", {{"axis", string("cp")}}, cp, {x.narrow(0, 0, rows), counts}));
      EXPECT_TRUE(run("local_slice", {{"dim", int64_t{0}}, {"axis", string("cp")}, {"zigzag", int64_t{1}}}, cp, {x})
                      .equal(ZigzagPart(x, 0, r, parts)));
    }
    EXPECT_TRUE(at::cat(over_tp).equal(x));
    EXPECT_TRUE(at::cat(over_cp).equal(x));
    EXPECT_TRUE(at::cat(by_counts).equal(x.narrow(0, 0, rows)));
  }
}

// Entries that say of a dim that it may be cut, of an output that it has the index, or of an input that it may be a
// term, and are wrong.
TEST_F(Cuts, NoticesWrongEntries) {
  const struct {
    const char *kind, *operands;
  } mutants[] = {
      {"rms_norm", "* h | h -> * h, w: * 1"},
      {"layer_norm", "* h | h, h -> * h, w: * 1, w: * 1"},
      {"rms_norm_grad", "+ * h, * h, w: * 1 | h | h -> * h"},
      {"mamba_conv", "t b f, i: D ? | f2 1 W, f2 -> t b f2"},
      {"mamba_conv_grad", "+ t b f2, t b f, i: D ? | f2 1 W, f2 | f2 1 W, f2 -> t b f2"},
      {"mamba_scan", "t b f2, t b f, i: D ? | fh, fh, fh -> t b fi, w: C b fh P N"},
      {"gated_norm", "t b fi, t b f | fi -> t b fi, w: t b F"},
      {"causal_attention", "t b f, i: D ? -> t b fa, w: b fh t"},
      {"causal_attention_grad", "+ t b fa, t b f, t b fa, w: b fh t, i: D ? -> t b f"},
      {"causal_attention_all_kv", "T B ha, T B K, i: D ? -> T B ha, w: B H T"},
      {"causal_attention_all_kv_grad", "+ T B ha, T B ha, T B K, T B ha, w: B H T, i: D ? -> T B ha, T B K"},
      {"route", "t B H | e H, e -> w: (tB) K, i: (tB) K, i: e, w: (tB) e, i: B e, w: (tB) e"},
      {"route", "t b H | E H, E -> w: (tb) K, i: (tb) K, i: E, w: (tb) E, i: B E, w: (tb) E"},
      {"sequence_aux_loss", "w: (tB) e, i: B e -> d: 1"},
      {"merge_images", "t B H, R H, i: B T -> t B H, !i: R"},
      {"experts", "! X f, !w: X, !i: * | L F f, L f F -> ! X f, ! X F"},
      {"experts", "! X H, !w: X, !i: * | L f H, L H f -> ! X H, ! X F"},
      {"experts", "! X H, !w: X, !i: * | l f H, l H f -> ! X H, ! X f"},
      {"packed_attention", "n f, i: I 2 -> n fa, w: fh n"},
      {"drop_class_tokens", "n H, i: I 2 -> p H"},
      {"linear", "+ * i | o i, o ? -> * O"},
      {"linear_input_grad", "+ * o | o i -> * I"},
      {"token_loss", "w: 2 t b, b t -> w: T b, d: 1"},
      {"add_residual_bias", "+ * H, + * H | H -> * H"},
      {"gelu", "+ * f -> * f"},
      {"gelu_grad", "+ * f, + * f -> * f"},
      {"rms_norm", "+ * H | H -> * H, w: * 1"},
      {"merge_images", "+ s B H, R H, i: B T -> s B H, !i: R"},
      {"token_loss", "+ w: 2 t b, b t -> w: t b, d: 1"},
      {"cross_entropy_parts", "t b v, i: b t -> w: t b, #w: 4 t b"},
      {"cross_entropy_parts", "t b v, i: b t -> ^w: t b, w: 4 t b"},
  };
  for (const auto& m : mutants) {
    Table mutant = table_;
    mutant[m.kind].operands = m.operands;
    EXPECT_TRUE(IsNoticed(mutant, m.kind)) << m.kind << ": " << m.operands;
  }
}

bool HasDim(const Entry& entry, const string& name) {
  for (const bool over_cp : {false, true}) {
    const OpSignature& signature = entry.signature(over_cp);
    for (const auto* list : {&signature.inputs, &signature.parameters, &signature.gradients, &signature.outputs}) {
      for (const OperandSignature& operand : *list) {
        for (const SignatureDim& dim : operand.dims) {
          if (dim.name == name) return true;
        }
      }
    }
  }
  return false;
}

// Lines about the parts of a dim that leave out what they say.
TEST_F(Cuts, NoticesWrongParts) {
  int mutants = 0;
  const auto expect_noticed = [&](const Table& mutant, const CutLine& line, const string& what) {
    for (const string& kind : std::vector<string>(absl::StrSplit(line.kinds, ' '))) {
      ++mutants;
      EXPECT_TRUE(IsNoticed(mutant, kind)) << kind << ": " << what;
    }
  };
  for (const Entry& entry : table_.entries) {
    for (size_t i = 0; i < entry.parts.size(); ++i) {
      // Where no operand has the dim, the line is of the kind whose attributes this one has.
      if (entry.parts[i].sizes.empty() || !HasDim(entry, entry.parts[i].name)) continue;
      Table mutant = table_;  // the dim is one part
      auto& parts = mutant[entry.name].parts;
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i));
      ++mutants;
      EXPECT_TRUE(IsNoticed(mutant, entry.name)) << entry.name << ": one part " << entry.parts[i].name;
    }
  }
  for (size_t i = 0; i < table_.cuts.size(); ++i) {
    const CutLine& line = table_.cuts[i];
    if (!line.along.empty()) {
      Table mutant = table_;
      mutant.cuts[i].along.clear();
      expect_noticed(mutant, line, "counts that stay those of the whole");
    }
    if (line.even) {
      Table mutant = table_;
      mutant.cuts[i].even = false;
      expect_noticed(mutant, line, "uneven parts");
    }
  }
  std::cout << "cut test: " << mutants << " wrong parts\n";
}

}  // namespace
}  // namespace planwright::executor::cut_test
