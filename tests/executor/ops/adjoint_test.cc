// Every line `transposes` of ops.def, run. The backward kinds of a forward kind get the operands that their lines say,
// and what they make must be its gradient: for random directions v and dy, the slope of dy . f along v is <di, v>. The
// slope comes from f alone, so no reference is needed.
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/executor/ops/op_cases.h"

namespace planwright::executor::adjoint_test {
namespace {

using namespace op_cases;
using std::string;

// A slope from four points is off by h^4 / 30 times a fifth derivative along the direction, and by roundings of f
// divided by h. Values are of order 1. With h = 3e-4 the first is 3e-16 times a derivative that is 1e5 at most (of a
// norm over few small numbers), the second 1e-16 / h = 3e-13 times the square root of the number of outputs, which is
// below 100. What is allowed is relative to the gradient, whose product with a direction has its size, and to 1 where
// the gradient is 0.
constexpr double kStep = 3e-4, kAllowed = 1e-9;
constexpr int kDirections = 3;

// Kinds without a gradient.
const std::map<string, string> kWithoutGradient = {
    {"routing_fingerprint", "integers"},
    {"deal_bands", "integers"},
    {"square_sum", "a number that is only logged"},
    {"repeat_frames", "pixels do not learn"},
    {"local_slice", "its transpose is a communication"},
    {"slice_rows", "its transpose is a communication"},
};

// Kinds with an input whose gradient is that of the output, moved: no instruction makes it (ops.def: passes_gradient).
Named PassedGradients(const OpCase& c, const Named& values) {
  const string& kind = c.stages[0].kind;
  Named passed;
  if (kind == "add_linear") {
    passed["0.di0"] = values.at("0.do0");
  } else if (kind == "add" || kind == "add_residual_bias") {
    for (size_t i = 0; i < (kind == "add" ? c.parts_of_f.size() : 2); ++i)
      passed[absl::StrCat("0.di", i)] = values.at("0.do0");
  } else if (kind == "add_bias" || kind == "add_positions" || kind == "add_images") {
    passed["0.di0"] = values.at("0.do0");
  } else if (kind == "concat") {
    int64_t at = 0;
    for (size_t i = 0; i < c.parts_of_f.size(); at += c.parts_of_f[i++])
      passed[absl::StrCat("0.di", i)] = values.at("0.do0").narrow(2, at, c.parts_of_f[i]);
  } else if (kind == "split") {
    Tensors parts;
    for (size_t i = 0; i < c.parts_of_f.size(); ++i) parts.push_back(values.at(absl::StrCat("0.do", i)));
    passed["0.di0"] = at::cat(parts, 2);
  }
  return passed;
}

// Adds `result` to the gradient that the table calls `name`: "0.di0", or "0.di0.1", a part of it along the last dim.
void AddGradient(const OpCase& c, const string& name, const at::Tensor& result, const Named& values, Named& sums) {
  const size_t dot = name.find('.', 2);
  const string whole = name.substr(0, dot), operand = string(whole).erase(whole.find('d'), 1);
  if (!sums.contains(whole)) sums[whole] = at::zeros_like(values.at(operand));
  at::Tensor sum = sums.at(whole);
  if (dot != string::npos) {
    const auto parts = c.gradient_parts.find(operand.substr(2));
    if (parts == c.gradient_parts.end()) throw CaseError(c.name + ": no sizes of the parts of " + whole);
    const std::vector<int64_t> sizes = Numbers(parts->second, c.attributes);
    const auto part = static_cast<size_t>(std::stoi(name.substr(dot + 1)));
    int64_t first = 0;
    for (size_t i = 0; i < part; ++i) first += sizes.at(i);
    sum = sum.narrow(-1, first, sizes.at(part));
  }
  TORCH_CHECK(sum.sizes() == result.sizes(), name, " is ", result.sizes(), ", not ", sum.sizes());
  sum.add_(result);
}

// dy . (f(x + at v) - f(x - at v)), of the fresh operand `name`.
double Difference(const Table& table, const OpCase& c, const Named& fresh, const Named& values, const string& name,
                  const at::Tensor& v, double at) {
  Named ahead = fresh, behind = fresh;
  ahead[name] = fresh.at(name) + v * at;
  behind[name] = fresh.at(name) - v * at;
  const Named high = RunForward(table, c, ahead), low = RunForward(table, c, behind);
  double sum = 0;
  for (const auto& [output, value] : high) {
    if (output[2] != 'o') continue;
    // Integers are choices. Where they change, f has no slope.
    if (!value.is_floating_point() && !value.equal(values.at(output)))
      throw CaseError(absl::StrCat(c.name, ": the step along ", name, " changes the integers ", output));
    const auto dy = values.find(string(output).insert(2, "d"));
    if (dy != values.end()) sum += ((value - low.at(output)).to(at::kDouble) * dy->second).sum().item<double>();
  }
  return sum;
}

struct Covered {
  std::map<string, std::set<size_t>> lines;  // "rms_norm_grad 0": how many forward instructions it was run on
  std::set<string> kinds;                    // forward kinds
  int gradients = 0;
};

// What is wrong with the gradients of one case.
std::vector<string> Problems(const Table& table, const OpCase& c, Covered* covered = nullptr) {
  const Named fresh = FreshOperands(table, c);
  Named values = RunForward(table, c, fresh);
  const std::vector<Wiring> backward = BackwardOf(table, c);
  AddCotangents(c, backward, values);
  for (const char* kind : {"add", "add_residual_bias", "add_bias", "add_positions", "add_images", "concat", "split"}) {
    if (c.stages[0].kind != kind) continue;
    for (size_t i = 0; values.contains(absl::StrCat("0.o", i)); ++i)
      values.emplace(absl::StrCat("0.do", i), at::randn(values.at(absl::StrCat("0.o", i)).sizes(), at::kDouble));
  }

  std::vector<string> problems;
  Named sums = PassedGradients(c, values);
  for (const Wiring& wiring : backward) {
    const string& kind = wiring.entry->name;
    if (covered) covered->lines[absl::StrCat(kind, " ", wiring.line)].insert(c.stages.size());
    try {
      const Gradients made = RunBackward(c, wiring, values);
      TORCH_CHECK(made.results.size() == wiring.results.size(), kind, " makes ", made.results.size(), " values, not ",
                  wiring.results.size());
      for (size_t i = 0; i < made.results.size(); ++i) AddGradient(c, wiring.results[i], made.results[i], values, sums);
      for (size_t i = 0; i < made.added.size(); ++i) {
        if (sums.contains(wiring.gradients[i])) problems.push_back(wiring.gradients[i] + " has two makers");
        AddGradient(c, wiring.gradients[i], made.added[i], values, sums);
      }
    } catch (const c10::Error& error) {
      problems.push_back(absl::StrCat(kind, " refuses: ", error.what_without_backtrace()));
    }
  }
  if (!problems.empty()) return problems;
  if (covered) {
    for (const OpCase::Stage& stage : c.stages) {
      if (!sums.empty()) covered->kinds.insert(stage.kind);
    }
  }

  at::manual_seed(12);  // a mutant gets the same directions
  for (const auto& [name, x] : fresh) {
    if (!x.is_floating_point() || std::find(c.data.begin(), c.data.end(), name) != c.data.end()) continue;
    const string gradient = string(name).insert(2, "d");
    // An operand for which no kind makes a gradient must have none.
    const at::Tensor di = sums.contains(gradient) ? sums.at(gradient) : at::zeros_like(x);
    if (covered) ++covered->gradients;
    for (int i = 0; i < kDirections; ++i) {
      const at::Tensor v = at::randn(x.sizes(), at::kDouble);
      const double slope = (8 * Difference(table, c, fresh, values, name, v, kStep) -
                            Difference(table, c, fresh, values, name, v, 2 * kStep)) /
                           (12 * kStep);
      const double along = (di * v).sum().item<double>();
      const double allowed = kAllowed * (1 + di.norm().item<double>());
      if (std::isfinite(allowed) && std::abs(slope - along) <= allowed) continue;
      problems.push_back(
          absl::StrCat(gradient, ": along a direction the slope is ", slope, ", by the gradient ", along));
      break;
    }
  }
  return problems;
}

class Adjoint : public testing::Test {
 protected:
  const Table table_ = OpsTable();
};

TEST_F(Adjoint, EveryTransposesLineIsTheGradient) {
  Covered covered;
  for (const OpCase& c : Cases()) {
    if (c.cut_over_cp_only) continue;
    for (const string& problem : Problems(table_, c, &covered)) ADD_FAILURE() << c.name << ": " << problem;
  }
  size_t lines = 0, forward = 0;
  for (const Entry& entry : table_.entries) {
    for (size_t line = 0; line < entry.transposes.size(); ++line) {
      // An instruction of a chain that may be absent is, in some case, and in another it is not.
      const std::vector<GradientRule::Link> chain = entry.transposes[line].rule().chain;
      const auto lengths =
          1 + std::count_if(chain.begin(), chain.end(), [](const auto& link) { return link.optional; });
      EXPECT_EQ(covered.lines[absl::StrCat(entry.name, " ", line)].size(), lengths)
          << "no case runs a form of the line transposes " << entry.transposes[line].text << " of " << entry.name;
      ++lines;
    }
    if (!entry.transposes.empty()) continue;
    ++forward;
    EXPECT_NE(covered.kinds.contains(entry.name), kWithoutGradient.contains(entry.name))
        << entry.name << " needs a case in op_cases.cc, or a reason in kWithoutGradient";
  }
  std::cout << "adjoint test: " << lines << " transposes lines, " << covered.kinds.size() << " of " << forward
            << " forward kinds (" << kWithoutGradient.size() << " have no gradient), " << covered.gradients
            << " gradients of inputs and parameters in " << Cases().size() << " cases\n";
}

// Results that are views of operands.
const std::set<string> kViews = {"split"};

// A fast form takes values that lie by rows, and hands others to the plain form. A result that lies otherwise, as
// LibTorch may lay it, makes all that follows slow, and nothing says so.
TEST_F(Adjoint, ResultsLieByRows) {
  int results = 0;
  const auto look = [&](const string& name, const at::Tensor& value) {
    ++results;
    EXPECT_TRUE(value.is_contiguous()) << name << " of " << value.sizes() << " has strides " << value.strides();
  };
  for (const OpCase& c : Cases()) {
    if (c.cut_over_cp_only) continue;
    Named values = RunForward(table_, c, FreshOperands(table_, c));
    for (const auto& [name, value] : values) {
      if (name[2] == 'o' && !kViews.contains(c.stages[static_cast<size_t>(name[0] - '0')].kind))
        look(c.name + " " + name, value);
    }
    const std::vector<Wiring> backward = BackwardOf(table_, c);
    AddCotangents(c, backward, values);
    for (const Wiring& wiring : backward) {
      if (kViews.contains(wiring.entry->name)) continue;
      const Tensors made = RunBackward(c, wiring, values).results;
      for (size_t i = 0; i < made.size(); ++i) look(absl::StrCat(c.name, " ", wiring.results[i]), made[i]);
    }
  }
  EXPECT_GT(results, 100);
}

// Operands that their handlers do not read: another value in their place changes nothing.
const std::set<string> kNotRead = {
    "route_grad 0.o0",  // weights, which it makes again from the logits
};

// Every operand of every line, replaced by each other value of its forward kinds that has its type: some case must
// notice.
TEST_F(Adjoint, NoticesEveryWrongOperand) {
  std::map<string, bool> noticed;  // by mutant
  for (const OpCase& c : Cases()) {
    if (c.cut_over_cp_only) continue;
    const Named values = RunForward(table_, c, FreshOperands(table_, c));
    for (const Wiring& wiring : BackwardOf(table_, c)) {
      const string& kind = wiring.entry->name;
      for (size_t at = 0; at < wiring.operands.size(); ++at) {
        const string& operand = wiring.operands[at];
        const at::Tensor& right = values.at(operand[2] == 'd' ? string(operand).erase(2, 1) : operand);
        for (const auto& [other, value] : values) {
          if (other[2] == 'p' || other == operand || right.numel() == 0) continue;
          if (value.sizes() != right.sizes() || value.dtype() != right.dtype()) continue;
          if (operand[2] != 'd' && value.is_same(right)) continue;  // linked: the same value
          if (kNotRead.contains(kind + " " + operand)) continue;
          const string name = absl::StrCat(kind, " with cp ", c.cp, " reads ", other, " for ", operand);
          if (noticed[name]) continue;
          Table mutant = table_;
          std::vector<string> changed = wiring.operands;
          changed[at] = other;
          string& text = mutant[kind].transposes[wiring.line].text;
          text = absl::StrCat(text.substr(0, text.find(':')), ": ", absl::StrJoin(changed, " "), " -> ",
                              absl::StrJoin(wiring.results, " "));
          noticed[name] = !Problems(mutant, c).empty();
        }
      }
    }
  }
  for (const auto& [mutant, found] : noticed) EXPECT_TRUE(found) << mutant;
  std::cout << "adjoint test: " << noticed.size() << " lines with a wrong operand\n";
  EXPECT_GT(noticed.size(), 0u);
}

// A line that gives its results to the wrong inputs, or calls a part of a gradient by another number.
TEST_F(Adjoint, NoticesWrongResults) {
  const struct {
    const char *kind, *from, *to, *name;
  } mutants[] = {
      {"gated_norm_grad", "di0 di1.0", "di1.0 di0", "gated norm"},
      {"mamba_conv_grad", "di0.1", "di0.0", "conv"},
      {"mamba_scan_grad", "di1.2", "di1.0", "scan"},
      {"gated_norm_grad", "di1.0", "di0", "gated norm"},
      {"linear_input_grad", "-> di0", "->", "linear"},
  };
  for (const auto& m : mutants) {
    Table mutant = table_;
    string& text = mutant[m.kind].transposes[0].text;
    ASSERT_NE(text.find(m.from), string::npos) << text;
    text.replace(text.find(m.from), string(m.from).size(), m.to);
    const auto c =
        std::find_if(Cases().begin(), Cases().end(), [&](const OpCase& candidate) { return candidate.name == m.name; });
    ASSERT_NE(c, Cases().end());
    EXPECT_FALSE(Problems(mutant, *c).empty()) << m.kind << ": " << m.to << " for " << m.from;
  }
}

}  // namespace
}  // namespace planwright::executor::adjoint_test
