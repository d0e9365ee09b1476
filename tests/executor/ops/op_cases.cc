#include "tests/executor/ops/op_cases.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "planner/plan/expression.h"
#include "planner/plan/image_bands.h"
#include "planner/plan/table_text.h"
#include "tests/executor/ops/run_op.h"

namespace planwright::executor::op_cases {
namespace {

using std::string;

std::vector<string> Words(const string& text) { return absl::StrSplit(text, ' ', absl::SkipEmpty()); }

// --- What ops.def does not say.

const std::vector<CutLine> kCuts = {
    // Heads of the scan share B and C in groups, and the gated norm has the same groups: no rank has a part of one.
    {"mamba_conv mamba_conv_grad mamba_scan mamba_scan_grad gated_norm gated_norm_grad", 'f', "groups",
     "inner bc heads groups"},
    // The query heads of a key head stay together.
    {"causal_attention causal_attention_grad", 'f', "kv_heads", "q_heads kv_heads"},
    // Rank r of n has the r-th part of the query heads; by r it knows which key head they share.
    {"causal_attention_all_kv causal_attention_all_kv_grad", 'h', "q_heads", "q_heads", true},
    {"packed_attention packed_attention_grad", 'f', "heads", "heads"},
    // What is joined keeps its parts, of 12, 6 and 18.
    {"concat split", 'f', "6", ""},
    // Rank r of n has the rows of the vocabulary from r V / n on.
    {"embed_tokens embed_tokens_grad cross_entropy_parts cross_entropy_grad", 'v', "", "", true},
    // Tokens are positions of two samples, and the rank finds its positions by its coordinate.
    {"routing_fingerprint", 't', "24", "", true},
    // Counts this rank's positions.
    {"unpermute_rows permute_rows_grad", 't', "", "sequence"},
};

// --- Values.

Values Fixed(const at::Tensor& tensor) {
  return [tensor](at::IntArrayRef) { return tensor.clone(); };
}
Values Whole(std::vector<int64_t> numbers) { return Fixed(at::tensor(numbers, at::kLong)); }
Values Normal() {
  return [](at::IntArrayRef shape) { return at::randn(shape, at::kDouble); };
}
Values Below(int64_t end) {
  return [end](at::IntArrayRef shape) { return at::randint(end, shape, at::kLong); };
}
Values Positive() {
  return [](at::IntArrayRef shape) { return at::rand(shape, at::kDouble).add_(0.3); };
}
// No number near 0, where relu(x)^2 has no second derivative.
Values AwayFromZero() {
  return [](at::IntArrayRef shape) {
    const at::Tensor x = at::randn(shape, at::kDouble);
    return x + x.sign() * 0.1;
  };
}
// [L,f,H]: the numbers of a row have one sign, so that a product with positive numbers is not near 0.
Values RowsOfOneSign() {
  return [](at::IntArrayRef shape) {
    const at::Tensor sign = at::randn({shape[0], shape[1], 1}, at::kDouble).sign();
    return at::rand(shape, at::kDouble).add_(0.3) * sign;
  };
}
Values ZerosAndOnes() {
  return [](at::IntArrayRef shape) { return at::randint(2, shape, at::kDouble); };
}
// `count` of the numbers below `end`, each once.
Values SomeOf(int64_t count, int64_t end) {
  return [=](at::IntArrayRef) { return at::randperm(end, at::kLong).narrow(0, 0, count).clone(); };
}
// The experts of each token: all different.
at::Tensor ChoicesOf(int64_t tokens, int64_t top_k, int64_t experts) {
  const at::Tensor token = at::arange(tokens, at::kLong).unsqueeze(1), slot = at::arange(top_k, at::kLong);
  return (token * 7 + slot * (1 + token % 3)) % experts;
}
// [B,T] with `count` image tokens, the number `image`.
Values WithImages(int64_t image, int64_t count) {
  return [=](at::IntArrayRef shape) {
    const at::Tensor tokens = at::randint(image, shape, at::kLong);
    tokens.view({-1}).index_fill_(0, at::randperm(tokens.numel(), at::kLong).narrow(0, 0, count), image);
    return tokens;
  };
}

// --- Cases.

using Integer = int64_t;

Attributes Mixer() {
  return {{"inner", Integer{48}}, {"bc", Integer{36}},   {"heads", Integer{24}},     {"groups", Integer{12}},
          {"state", Integer{3}},  {"chunk", Integer{4}}, {"group_size", Integer{4}}, {"eps", 0.01}};
}
const std::string kMixerSizes = "T 10, f 192, f2 120, fh 24, fi 48, W 4, t 10";

Attributes Heads(Integer queries, Integer keys, Integer size) {
  return {{"q_heads", queries}, {"kv_heads", keys}, {"head_dim", size}};
}

void AddAttention(std::vector<OpCase>& cases) {
  const std::vector<std::vector<int64_t>> packings = {{},          {24},        {6, 24}, {1, 5, 7, 12, 20, 24},
                                                      {3, 23, 24}, {12, 18, 24}};
  for (const std::vector<int64_t>& ends : packings) {
    const string b = ends.empty() ? "4" : "1", name = ends.empty() ? "" : absl::StrCat(" ", ends.size(), " documents");
    OpCase plain = {.name = "causal attention" + name,
                    .stages = {{"causal_attention"}},
                    .sizes = "T 24, f 96, b " + b,
                    .attributes = Heads(24, 12, 2)};
    if (!ends.empty()) plain.values["0.i1"] = Whole(ends);
    OpCase part = plain;
    part.name += " over cp";
    part.sizes = "s 12, T 24, fa 48, f2 48, b " + b;
    part.attributes.insert({{"cp", Integer{2}}, {"zigzag", Integer{1}}});
    part.cp = 2, part.cp_rank = 1;
    part.values.clear();
    if (!ends.empty()) part.values["0.i2"] = Whole(ends);
    cases.push_back(plain);
    cases.push_back(part);
    // Up to 4 ranks, as many as key heads or more. Each has the keys of all.
    for (const Integer keys : {1, 2}) {
      if (ends.size() > 2) continue;
      OpCase all = {.name = absl::StrCat("causal attention with all of ", keys, " key heads", name),
                    .stages = {{"causal_attention_all_kv"}},
                    .sizes = absl::StrCat("T 24, ha 48, K ", 4 * keys, ", h 24, B ", b),
                    .attributes = Heads(24, keys, 2)};
      if (keys == 2) all.parts = {2, 4};
      if (!ends.empty()) all.values["0.i2"] = Whole(ends);
      OpCase its_part = all;
      its_part.name += " over cp";
      its_part.sizes = absl::StrCat("s 12, T 24, ha 48, K ", 4 * keys, ", h 24, B ", b);
      its_part.attributes.insert({{"cp", Integer{2}}, {"zigzag", Integer{1}}});
      its_part.cp = 2, its_part.cp_rank = 1;
      cases.push_back(all);
      cases.push_back(its_part);
    }
  }
  // More positions than a strip of queries has, in the whole and in a part.
  cases.push_back({.name = "causal attention in strips",
                   .stages = {{"causal_attention"}},
                   .sizes = "T 1280, f 24, b 1",
                   .attributes = Heads(4, 2, 3),
                   .cut_over_cp_only = true,
                   .parts = {2}});
}

struct Lane {
  const char* name;
  std::vector<std::array<int64_t, 2>> grids;
};
const std::vector<Lane> kLanes = {
    {"mixed", {{4, 6}, {2, 4}, {6, 2}}},
    {"odd parts", {{6, 2}, {2, 10}, {4, 4}, {2, 2}, {8, 6}}},
    {"images end with parts", {{4, 4}, {2, 8}, {4, 2}, {2, 4}}},  // then a part has no class token of its own
    {"one tall image", {{16, 2}}},
    {"the whole table", {{8, 8}}},
    {"one square", {{2, 2}}},
    {"two squares", {{2, 2}, {2, 2}}},
    {"no images", {}},
};
constexpr int64_t kFactor = 2, kClasses = 3;

// Rows of tokens and of patches: of a coordinate, or of the lane.
std::pair<int64_t, int64_t> RowsOf(const Lane& lane, int64_t cp, int64_t coordinate) {
  int64_t tokens = 0, patches = 0;
  const std::vector<std::vector<ImageRows>> parts = DealBands(lane.grids, kFactor, cp);
  for (const ImageRows& rows : parts[static_cast<size_t>(coordinate)]) {
    const int64_t own = rows.count * lane.grids[static_cast<size_t>(rows.image)][1];
    patches += own;
    tokens += own + (rows.has_class_tokens() ? kClasses : 0);
  }
  return {tokens, patches};
}

void AddLane(const Lane& lane, bool over_cp, std::vector<OpCase>& cases) {
  const auto images = static_cast<int64_t>(lane.grids.size());
  const at::Tensor grid = at::empty({images, 2}, at::kLong), ids = at::empty({images, 2}, at::kLong);
  for (int64_t i = 0; i < images; ++i) {
    const auto& [rows, columns] = lane.grids[static_cast<size_t>(i)];
    grid[i].copy_(at::tensor({rows, columns}, at::kLong));
    ids[i].copy_(at::tensor({7 + i / 2, i % 2}, at::kLong));
  }
  const auto [tokens, patches] = RowsOf(lane, 1, 0);
  const auto [own_tokens, own_patches] = RowsOf(lane, 2, 1);
  const string sizes = absl::StrCat("N ", tokens, ", P ", patches, ", R ", patches / 4, ", sN ", own_tokens, ", sP ",
                                    own_patches, ", sR ", own_patches / 4, ", C ", kClasses);
  const auto add = [&](const char* kind, const string& more, const Attributes& attributes, size_t grid_at) {
    OpCase& c = cases.emplace_back();
    c.name = absl::StrCat(kind, ", ", lane.name, over_cp ? " over cp" : "");
    c.stages = {{kind}};
    c.sizes = absl::StrCat(sizes, ", ", more);
    c.attributes = attributes;
    c.attributes.insert({{"factor", kFactor}, {"class_tokens", kClasses}});
    if (over_cp) c.attributes["cp"] = Integer{2};
    c.cp = over_cp ? 2 : 1, c.cp_rank = over_cp ? 1 : 0;
    c.values[absl::StrCat("0.i", grid_at)] = Fixed(grid);
    if (string(kind) == "position_and_class") c.values["0.i2"] = Fixed(ids);
  };
  for (Integer crop : {0, 1}) add("position_and_class", "H 4, Q 64", {{"side", Integer{8}}, {"crop", crop}}, 1);
  add("packed_attention", "f 72, fa 24, f2 48", {{"heads", Integer{12}}, {"head_dim", Integer{2}}}, over_cp ? 2 : 1);
  add("drop_class_tokens", "H 3", {}, 1);
  add("pixel_shuffle", "H 3, G 12", {}, 1);
}

std::vector<OpCase> MakeCases() {
  const std::map<string, Values> choices = {{"0.i2", Fixed(ChoicesOf(48, 2, 5))}};
  const Attributes rows = {{"top_k", Integer{2}}, {"sequence", Integer{24}}, {"samples", Integer{2}}};
  // Behind a gather over two ep ranks: the second rank has the experts 2 and 3 of 4.
  const Attributes gathered = {
      {"top_k", Integer{2}}, {"sequence", Integer{6}}, {"samples", Integer{2}}, {"ep", Integer{2}}};
  const at::Tensor chosen = ChoicesOf(12, 2, 4);
  const at::Tensor counts = at::empty({2, 2}, at::kLong);
  for (int64_t p = 0; p < 2; ++p)
    counts[p].copy_(at::bincount(chosen.narrow(0, 6 * p, 6).reshape({-1}), {}, 4).narrow(0, 2, 2));
  const Attributes routing = {{"top_k", Integer{3}}, {"scale", 2.5}};
  Attributes trained_routing = routing;
  trained_routing.insert({{"sequence", Integer{24}}, {"aux_scale", 0.7}});

  std::vector<OpCase> cases = {
      {.name = "embed tokens",
       .stages = {{"embed_tokens"}},
       .sizes = "b 4, t 24, v 24, H 5",
       .attributes = {{"image_token", Integer{3}}},
       .values = {{"0.i0", Below(24)}}},
      {.name = "merge images",
       .stages = {{"merge_images"}},
       .sizes = "s 24, T 24, B 2, H 3, R 9",
       .attributes = {{"image_token", Integer{7}}},
       .values = {{"0.i2", WithImages(7, 9)}}},
      {.name = "merge images over cp",
       .stages = {{"merge_images"}},
       .sizes = "s 12, T 24, B 2, H 3, R 9",
       .attributes = {{"image_token", Integer{7}}, {"cp", Integer{2}}, {"zigzag", Integer{1}}},
       .values = {{"0.i2", WithImages(7, 9)}},
       .cp = 2,
       .cp_rank = 1},
      {.name = "rms norm", .stages = {{"rms_norm"}}, .sizes = "H 7", .attributes = {{"eps", 0.01}}, .leading = {6, 4}},
      {.name = "layer norm",
       .stages = {{"layer_norm"}},
       .sizes = "H 7",
       .attributes = {{"eps", 0.01}},
       .leading = {6, 4}},
      {.name = "linear", .stages = {{"linear"}}, .sizes = "i 6, o 8", .leading = {6, 4}},
      {.name = "square linear", .stages = {{"linear"}}, .sizes = "i 6, o 6", .leading = {6, 4}},
      {.name = "linear with bias",
       .stages = {{"linear"}},
       .sizes = "i 6, o 8",
       .values = {{"0.p1", Normal()}},
       .leading = {6, 4}},
      {.name = "squared relu",
       .stages = {{"squared_relu"}},
       .sizes = "f 6",
       .values = {{"0.i0", AwayFromZero()}},
       .leading = {6, 4}},
      {.name = "gelu", .stages = {{"gelu"}}, .sizes = "f 6", .leading = {6, 4}},
      {.name = "gelu by erf",
       .stages = {{"gelu"}},
       .sizes = "f 6",
       .attributes = {{"erf", Integer{1}}},
       .leading = {6, 4}},
      {.name = "add", .stages = {{"add"}}, .sizes = "", .leading = {6, 4}, .parts_of_f = {6, 6, 6}},
      {.name = "add residual bias", .stages = {{"add_residual_bias"}}, .sizes = "H 7", .leading = {6, 4}},
      {.name = "concat",
       .stages = {{"concat"}},
       .sizes = "",
       .attributes = {{"dim", Integer{2}}},
       .leading = {6, 4},
       .parts_of_f = {12, 6, 18}},
      {.name = "split",
       .stages = {{"split"}},
       .sizes = "",
       .attributes = {{"dim", Integer{2}}},
       .leading = {6, 4},
       .parts_of_f = {12, 6, 18}},
      {.name = "conv",
       .stages = {{"mamba_conv"}},
       .sizes = kMixerSizes + ", b 4",
       .attributes = Mixer(),
       .gradient_parts = {{"i0", "inner, inner + 2 * bc, heads"}}},
      {.name = "conv of documents",
       .stages = {{"mamba_conv"}},
       .sizes = kMixerSizes + ", b 1",
       .attributes = Mixer(),
       .values = {{"0.i1", Whole({3, 4, 10})}},
       .gradient_parts = {{"i0", "inner, inner + 2 * bc, heads"}}},
      {.name = "scan",
       .stages = {{"mamba_scan"}},
       .sizes = kMixerSizes + ", b 4",
       .attributes = Mixer(),
       .gradient_parts = {{"i1", "inner, inner + 2 * bc, heads"}}},
      {.name = "scan of documents",
       .stages = {{"mamba_scan"}},
       .sizes = kMixerSizes + ", b 1",
       .attributes = Mixer(),
       .values = {{"0.i2", Whole({3, 4, 10})}},
       .gradient_parts = {{"i1", "inner, inner + 2 * bc, heads"}}},
      {.name = "gated norm",
       .stages = {{"gated_norm"}},
       .sizes = kMixerSizes + ", b 4",
       .attributes = Mixer(),
       .gradient_parts = {{"i1", "inner, inner + 2 * bc, heads"}}},
      {.name = "route", .stages = {{"route"}}, .sizes = "t 24, B 2, H 6, E 8", .attributes = routing},
      {.name = "route and auxiliary loss",
       .stages = {{"route"}, {"sequence_aux_loss", {{0, "0.o3"}, {1, "0.o4"}}}},
       .sizes = "t 24, B 2, H 6, E 8",
       .attributes = trained_routing,
       .cotangents = {{"1.do0", 0.7}}},  // aux_scale
      {.name = "routing fingerprint",
       .stages = {{"routing_fingerprint"}},
       .sizes = "",
       .attributes = {{"sequence", Integer{24}}},
       .values = {{"0.i0", Fixed(ChoicesOf(48, 2, 5))}}},
      {.name = "permute rows",
       .stages = {{"permute_rows"}},
       .sizes = "t 24, B 2, K 2, H 4",
       .attributes = rows,
       .values = choices},
      {.name = "select rows",
       .stages = {{"select_rows"}},
       .sizes = "T 6, B 2, K 2, H 4",
       .attributes = gathered,
       .values = {{"0.i2", Fixed(chosen)}, {"0.i3", Fixed(counts)}},
       .ep = 2,
       .ep_rank = 1},
      {.name = "experts",
       .stages = {{"experts"}},
       .sizes = "X 14, L 3, H 5, f 12",
       .values = {{"0.i0", Positive()},
                  {"0.i2", Fixed(at::tensor({2, 0, 4, 1, 5, 2}, at::kLong).view({2, 3}))},
                  {"0.p0", RowsOfOneSign()}}},
      {.name = "unpermute rows",
       .stages = {{"unpermute_rows"}},
       .sizes = "t 24, B 2, K 2, H 4",
       .attributes = rows,
       .values = {{"0.i1", SomeOf(96, 96)}}},
      {.name = "combine rows",
       .stages = {{"combine_rows"}},
       .sizes = "X 9, H 4",
       .attributes = gathered,
       .values = {{"0.i1", SomeOf(9, 24)}}},
      {.name = "cross entropy",
       .stages = {{"cross_entropy_parts"},
                  {"cross_entropy_sums", {{0, "0.o1"}, {1, "0.o0"}}},
                  {"token_loss", {{0, "1.o0"}}}},
       .sizes = "t 24, b 4, v 24",
       .values = {{"0.i1", Below(24)}, {"2.i1", ZerosAndOnes()}},
       .cotangents = {{"2.do1", 1}},  // the loss itself
       .data = {"2.i1"}},
      {.name = "square sum", .stages = {{"square_sum"}}, .sizes = "f 6", .leading = {6, 4}},
  };
  AddAttention(cases);
  for (const Lane& lane : kLanes) AddLane(lane, false, cases);
  AddLane(kLanes[1], true, cases);
  return cases;
}

// --- Running them.

// The size of a name; another case of its first letter will do, so that a mutant may mark a dim.
int64_t SizeOf(const OpCase& c, const string& name) {
  string other = name;
  other[0] = static_cast<char>(absl::ascii_islower(static_cast<unsigned char>(name[0]))
                                   ? absl::ascii_toupper(static_cast<unsigned char>(name[0]))
                                   : absl::ascii_tolower(static_cast<unsigned char>(name[0])));
  for (const string& wanted : {name, other}) {
    for (const string& size : std::vector<string>(absl::StrSplit(c.sizes, ','))) {
      const std::vector<string> words = Words(size);
      if (words.size() == 2 && words[0] == wanted) return std::stoll(words[1]);
    }
  }
  return -1;
}

std::vector<int64_t> ShapeOf(const OpCase& c, const OperandSignature& operand, size_t index) {
  std::vector<int64_t> shape;
  if (operand.leading) shape = c.leading;
  for (const SignatureDim& dim : operand.dims) {
    if (dim.number >= 0) {
      shape.push_back(dim.number);
    } else if (!dim.factors.empty()) {
      int64_t product = 1;
      for (const string& factor : dim.factors) product *= SizeOf(c, factor);
      shape.push_back(product);
    } else if (!c.parts_of_f.empty()) {
      const auto all = std::accumulate(c.parts_of_f.begin(), c.parts_of_f.end(), int64_t{0});
      shape.push_back(operand.repeats ? c.parts_of_f[index] : all);
    } else {
      shape.push_back(SizeOf(c, dim.name));
    }
  }
  return shape;
}

at::Tensor MakeOperand(const OpCase& c, const OperandSignature& operand, const string& name, size_t index) {
  const std::vector<int64_t> shape = ShapeOf(c, operand, index);
  const auto values = c.values.find(name);
  if (values != c.values.end()) return values->second(shape);
  if (operand.dtype == OperandSignature::DTypeClass::kInt64)
    throw CaseError(absl::StrCat(c.name, ": no values for the integers ", name));
  if (std::find(shape.begin(), shape.end(), -1) != shape.end())
    throw CaseError(absl::StrCat(c.name, ": a size of ", name, " is missing"));
  return Normal()(shape);
}

std::vector<string> NamesUpTo(const string& prefix, size_t count) {
  std::vector<string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(absl::StrCat(prefix, i));
  return names;
}

// Which stage of the case each instruction of a chain is; -1: the case lacks it. None: the case has other stages.
std::optional<std::vector<int>> StagesOf(const GradientRule& rule, const OpCase& c) {
  std::vector<int> stages;
  size_t next = 0;
  for (const GradientRule::Link& link : rule.chain) {
    const bool has = next < c.stages.size() && OpName(link.kind) == c.stages[next].kind;
    if (!has && !link.optional) return std::nullopt;
    stages.push_back(has ? static_cast<int>(next++) : -1);
  }
  if (next != c.stages.size()) return std::nullopt;
  return stages;
}

// "0.di1.2"
string NameOfOperand(const GradientOperand& operand, int stage) {
  using enum GradientOperand::Kind;
  const bool gradient = operand.kind == kInputGradient || operand.kind == kOutputGradient;
  const bool input = operand.kind == kInput || operand.kind == kInputGradient;
  return absl::StrCat(stage < 0 ? "-" : absl::StrCat(stage), gradient ? ".d" : ".", input ? "i" : "o", operand.index,
                      operand.part < 0 ? "" : absl::StrCat(".", operand.part));
}

RankCoordinates CoordinatesOfCase(const OpCase& c) {
  return {.cp = c.cp, .cp_rank = c.cp_rank, .ep = c.ep, .ep_rank = c.ep_rank};
}

// Of a kind that splits, its outputs are what the case says.
Tensors SplitOutputs(const OpCase& c) {
  Tensors outputs;
  for (int64_t size : c.parts_of_f) {
    std::vector<int64_t> shape = c.leading;
    shape.push_back(size);
    outputs.push_back(at::empty(shape, at::kDouble));
  }
  return outputs;
}

// What a text says. Mutants are many, and each asks for all texts.
template <typename Read>
const Read& ReadOnce(const string& text, Read (*take)(LineReader&)) {
  static std::unordered_map<string, Read> known;
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  LineReader line(text);
  Read read = take(line);
  line.Expect(line.empty());
  return known.emplace(text, std::move(read)).first->second;
}

Wiring Wire(const Table& table, const OpCase& c, const Entry& entry, size_t line, const GradientNames& names) {
  Wiring wiring = {.entry = &entry, .line = line, .operands = names.operands, .results = names.results};
  const OpSignature& own = entry.signature(c.cp > 1);
  const OpSignature& forward = table[c.stages[0].kind].signature(c.cp > 1);
  // An optional operand is present where the forward has it, or by its attribute.
  while (!wiring.operands.empty() && wiring.operands.size() <= own.inputs.size()) {
    const OperandSignature& last = own.inputs[wiring.operands.size() - 1];
    const string& name = wiring.operands.back();
    const bool absent = last.optional && (last.with.empty() ? name[2] == 'i' && !c.values.contains(name)
                                                            : !c.attributes.contains(last.with));
    if (!absent) break;
    wiring.operands.pop_back();
  }
  for (const string& name : wiring.operands) {
    if (name[0] == '-') throw CaseError(c.name + ": " + entry.name + " reads what this case does not make");
  }
  // Its slots are the first ones of its forward.
  const size_t slots = CountOf(c, forward.parameters, "0.p");
  wiring.parameters = NamesUpTo("0.p", std::min(slots, own.parameters.size()));
  wiring.gradients = NamesUpTo("0.dp", std::min(slots, own.gradients.size()));
  return wiring;
}

}  // namespace

const GradientRule& Entry::Transpose::rule() const { return ReadOnce<GradientRule>(text, TakeGradientRule); }

const OpSignature& Entry::signature(bool over_cp) const {
  return ReadOnce<OpSignature>(over_cp && !operands_cp.empty() ? operands_cp : operands, TakeSignature);
}

const Entry& Table::operator[](const string& name) const {
  for (const Entry& entry : entries) {
    if (entry.name == name) return entry;
  }
  throw CaseError("no compute kind " + name);
}
Entry& Table::operator[](const string& name) { return const_cast<Entry&>(std::as_const(*this)[name]); }

Table OpsTable() {
  Table table{{}, kCuts};
  for (const OpInfo& info : AllOps()) {
    if (info.op_class != OpClass::kCompute) continue;
    Entry& entry = table.entries.emplace_back();
    entry.name = string(info.name), entry.kind = info.kind;
    entry.operands = info.operands, entry.operands_cp = info.operands_cp;
    entry.parts = info.parts;
    for (size_t i = 0; i < info.transposes.size(); ++i)
      entry.transposes.push_back({info.transposes_texts[i], info.transposes[i].over_cp});
  }
  return table;
}

const std::vector<OpCase>& Cases() {
  static const std::vector<OpCase> cases = MakeCases();
  return cases;
}

int64_t Number(const Expression& formula, const Attributes& attributes) {
  const double value = formula.Evaluate([&](const string& name) {
    const auto found = attributes.find(name);
    const auto* number = found == attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
    return number ? static_cast<double>(*number) : std::numeric_limits<double>::quiet_NaN();
  });
  if (std::isnan(value)) throw CaseError("no value of " + formula.text());
  return std::llround(value);
}

int64_t Number(const string& formula, const Attributes& attributes) { return Number(Expression(formula), attributes); }

std::vector<int64_t> Numbers(const string& formulas, const Attributes& attributes) {
  std::vector<int64_t> numbers;
  for (const string& formula : std::vector<string>(absl::StrSplit(formulas, ',')))
    numbers.push_back(Number(string(absl::StripAsciiWhitespace(formula)), attributes));
  return numbers;
}

size_t CountOf(const OpCase& c, const std::vector<OperandSignature>& list, const string& prefix) {
  size_t count = 0;
  for (const OperandSignature& operand : list) {
    if (operand.repeats) return count + c.parts_of_f.size();
    if (operand.optional && !c.values.contains(absl::StrCat(prefix, count))) break;
    ++count;
  }
  return count;
}

Tensors RunKind(const Entry& entry, const Attributes& attributes, const RankCoordinates& rank, const Tensors& inputs,
                const Tensors& parameters, const Tensors& gradients, const Tensors& outputs) {
  std::vector<Output> types;
  for (const at::Tensor& output : outputs) {
    Output& type = types.emplace_back();
    for (int64_t size : output.sizes()) type.type.dims.emplace_back(size);
  }
  return Op(attributes)
      .OnTpRank(rank.tp_rank, rank.tp)
      .OnCpRank(rank.cp_rank, rank.cp)
      .OnEpRank(rank.ep_rank, rank.ep)
      .WithOutputs(types)
      .Run(ComputeHandlerOf(entry.kind), inputs, parameters, gradients);
}

Named FreshOperands(const Table& table, const OpCase& c) {
  at::manual_seed(11);
  Named fresh;
  for (size_t k = 0; k < c.stages.size(); ++k) {
    const OpSignature& signature = table[c.stages[k].kind].signature(c.cp > 1);
    const string stage = absl::StrCat(k, ".");
    for (size_t i = 0; i < CountOf(c, signature.inputs, stage + "i"); ++i) {
      if (c.stages[k].links.contains(i)) continue;
      const string name = absl::StrCat(stage, "i", i);
      fresh[name] = MakeOperand(c, *OperandAt(signature.inputs, i), name, i);
    }
    for (size_t i = 0; i < CountOf(c, signature.parameters, stage + "p"); ++i) {
      const string name = absl::StrCat(stage, "p", i);
      fresh[name] = MakeOperand(c, signature.parameters[i], name, i);
    }
  }
  return fresh;
}

Named RunForward(const Table& table, const OpCase& c, const Named& fresh) {
  Named values = fresh;
  for (size_t k = 0; k < c.stages.size(); ++k) {
    const Entry& entry = table[c.stages[k].kind];
    const OpSignature& signature = entry.signature(c.cp > 1);
    const string stage = absl::StrCat(k, ".");
    for (const auto& [input, output] : c.stages[k].links) values[absl::StrCat(stage, "i", input)] = values.at(output);
    const Tensors outputs =
        RunKind(entry, c.attributes, CoordinatesOfCase(c),
                Of(values, NamesUpTo(stage + "i", CountOf(c, signature.inputs, stage + "i"))),
                Of(values, NamesUpTo(stage + "p", CountOf(c, signature.parameters, stage + "p"))), {}, SplitOutputs(c));
    for (size_t i = 0; i < outputs.size(); ++i) values[absl::StrCat(stage, "o", i)] = outputs[i];
  }
  return values;
}

std::optional<GradientNames> NamesIn(const OpCase& c, const Entry::Transpose& line) {
  const GradientRule& rule = line.rule();
  const std::optional<std::vector<int>> stages = StagesOf(rule, c);
  if (!stages) return std::nullopt;
  GradientNames names;
  for (const GradientOperand& operand : rule.operands)
    names.operands.push_back(NameOfOperand(operand, (*stages)[operand.link]));
  for (const GradientOperand& result : rule.results)
    names.results.push_back(NameOfOperand(result, (*stages)[result.link]));
  return names;
}

std::vector<Wiring> BackwardOf(const Table& table, const OpCase& c) {
  std::vector<Wiring> all;
  for (const Entry& entry : table.entries) {
    std::optional<Wiring> found;
    for (size_t line = 0; line < entry.transposes.size(); ++line) {
      if (entry.transposes[line].over_cp && c.cp == 1) continue;
      // A line for cp comes behind the plain one.
      if (const auto names = NamesIn(c, entry.transposes[line])) found = Wire(table, c, entry, line, *names);
    }
    if (found) all.push_back(*found);
  }
  return all;
}

void AddCotangents(const OpCase& c, const std::vector<Wiring>& backward, Named& values) {
  for (const auto& [name, number] : c.cotangents) {
    string output = name;
    output.erase(output.find('d'), 1);
    values[name] = at::zeros_like(values.at(output)).fill_(number);
  }
  for (const Wiring& wiring : backward) {
    for (const string& name : wiring.operands) {
      if (name[2] != 'd' || values.contains(name)) continue;
      string output = name;
      output.erase(output.find('d'), 1);
      values[name] = at::randn(values.at(output).sizes(), at::kDouble);
    }
  }
}

Gradients RunBackward(const OpCase& c, const Wiring& wiring, const Named& values) {
  Tensors buffers;
  for (string name : wiring.gradients) {
    name.erase(name.find('d'), 1);
    buffers.push_back(values.at(name).clone().fill_(0.5));  // not zero: handlers must add
  }
  Gradients gradients;
  gradients.results = RunKind(*wiring.entry, c.attributes, CoordinatesOfCase(c), Of(values, wiring.operands),
                              Of(values, wiring.parameters), buffers);
  for (const at::Tensor& buffer : buffers) gradients.added.push_back(buffer - 0.5);
  return gradients;
}

Tensors Of(const Named& values, const std::vector<string>& names) {
  Tensors tensors;
  for (const string& name : names) {
    const auto found = values.find(name);
    if (found == values.end()) throw CaseError("no value " + name);
    tensors.push_back(found->second);
  }
  return tensors;
}

}  // namespace planwright::executor::op_cases
