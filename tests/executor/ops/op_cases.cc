#include "tests/executor/ops/op_cases.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bincount.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/randperm.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/image_bands.h"

namespace planwright::executor::op_cases {
namespace {

using std::string;

const std::vector<CutLine> kCuts = {
    // Heads of the scan share B and C in groups, and the gated norm has the same groups: no rank has a part of one.
    {"mamba_conv mamba_conv_grad mamba_scan mamba_scan_grad gated_norm gated_norm_grad", 'f', "groups",
     "inner bc heads groups"},
    // The query heads of a key head stay together.
    {"causal_attention causal_attention_grad", 'f', "kv_heads", "q_heads kv_heads"},
    // Rank r of n has the r-th part of the query heads; by r it knows which key head they share.
    {"causal_attention_all_kv causal_attention_all_kv_grad", 'h', "q_heads", "q_heads", true},
    {"packed_attention packed_attention_grad axial_rope axial_rope_grad", 'f', "heads", "heads"},
    // Heads that are normed and turn; a rank has as many key as value heads.
    {"head_norm head_norm_grad rope rope_grad", 'f', "k_heads", "q_heads k_heads v_heads"},
    {"gated_silu gated_silu_grad", 'f', "width", "width"},
    {"gated_experts gated_experts_grad", 'f', "ffn", "ffn"},
    // The product lies at the same place of each rank's part.
    {"add_linear add_linear_input_grad add_linear_weight_grad", 'o', "width / 2", "width first"},
    // What is joined keeps its parts, of 12, 6 and 18.
    {"concat split", 'f', "6", ""},
    // Rank r of n has the rows of the vocabulary from r V / n on.
    {"embed_tokens embed_tokens_grad cross_entropy_parts cross_entropy_grad", 'v', "", "", true},
    // Tokens are positions of two samples, and the rank finds its positions by its coordinate.
    {"routing_fingerprint", 't', "24", "", true},
    // A rank has the positions of its coordinate, and finds the image tokens among them.
    {"add_images", 't', "", "", true},
    // Counts this rank's positions.
    {"unpermute_rows permute_rows_grad", 't', "", "sequence"},
};

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

// With all heads, with queries alone, and with keys and values alone, as where tp has more ranks than key heads.
void AddHeads(std::vector<OpCase>& cases) {
  const auto attributes = [](Integer queries, Integer keys) {
    return Attributes{{"q_heads", queries}, {"k_heads", keys},      {"v_heads", keys}, {"head_dim", Integer{4}},
                      {"eps", 0.01},        {"rotary", Integer{2}}, {"theta", 100.0}};
  };
  const Attributes all = attributes(24, 12),
                   yarn = {{"scaling", Integer{3}}, {"factor", 2.5},    {"original", 40.0}, {"low", 1.0},
                           {"high", 3.0},           {"amplitude", 1.25}};
  cases.push_back({.name = "norms of heads",
                   .stages = {{"head_norm"}},
                   .sizes = "f 192, fh 36, D 4",
                   .attributes = all,
                   .values = {{"0.p1", Normal()}},
                   .leading = {6, 4}});
  cases.push_back({.name = "rotary embedding",
                   .stages = {{"rope"}},
                   .sizes = "t 24, b 4, f 192, A 1",
                   .attributes = all,
                   .values = {{"0.i1", Below(500)}}});
  OpCase& turned = cases.emplace_back(cases.back());
  turned.name += " by yarn";
  turned.attributes.insert(yarn.begin(), yarn.end());
  Attributes of_images = attributes(24, 12);
  of_images.insert({{"height", Integer{1}}, {"width", Integer{1}}});
  of_images["head_dim"] = of_images["rotary"] = Integer{8};
  cases.push_back({.name = "rotary embedding of three axes",
                   .stages = {{"rope"}},
                   .sizes = "t 24, b 4, f 384, A 3",
                   .attributes = of_images,
                   .values = {{"0.i1", Below(500)}}});
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
  add("add_positions", "H 4, Q 49", {{"side", Integer{7}}}, 1);
  add("axial_rope", "f 144", {{"heads", Integer{12}}, {"head_dim", Integer{4}}, {"theta", 100.0}}, 1);
  add("pixel_shuffle", "H 3, G 12", {}, 1);
}

// As AddRoutes below, of the softmax router.
void AddSoftmaxRoutes(std::vector<OpCase>& cases) {
  for (const Integer normalized : {0, 1}) {
    for (const Integer top_k : {1, 3, 4}) {
      OpCase& c = cases.emplace_back(
          OpCase{.name = absl::StrCat("softmax route to ", top_k, ", ", normalized), .stages = {{"route_softmax"}}});
      c.sizes = absl::StrCat("t 24, B 2, H 6, E ", top_k == 4 ? 4 : 8);
      c.attributes = {{"top_k", top_k}, {"normalized", normalized}};
      if (top_k == 1) continue;
      c.stages.push_back({"sequence_aux_loss", {{0, "0.o3"}, {1, "0.o4"}}});
      c.attributes.insert({{"sequence", Integer{24}}, {"aux_scale", 0.7}});
      c.cotangents = {{"1.do0", 0.7}};  // aux_scale
    }
  }
}

// Both rules for the weights of a token's experts, and what is meant without one: of one expert, of some and of all.
void AddRoutes(std::vector<OpCase>& cases) {
  const auto add = [&](const string& name, Integer top_k, std::optional<Integer> normalized, bool trained) {
    OpCase& c = cases.emplace_back(OpCase{.name = name, .stages = {{"route"}}});
    c.sizes = absl::StrCat("t 24, B 2, H 6, E ", top_k == 4 ? 4 : 8);
    c.attributes = {{"top_k", top_k}, {"scale", 2.5}};
    if (normalized) c.attributes["normalized"] = *normalized;
    if (!trained) return;
    c.name += " and auxiliary loss";
    c.stages.push_back({"sequence_aux_loss", {{0, "0.o3"}, {1, "0.o4"}}});
    c.attributes.insert({{"sequence", Integer{24}}, {"aux_scale", 0.7}});
    c.cotangents = {{"1.do0", 0.7}};  // aux_scale
  };
  add("route", 3, std::nullopt, false);
  add("route", 3, std::nullopt, true);
  add("route undivided", 3, 0, false);
  add("route to one expert", 1, std::nullopt, false);
  add("route to one expert divided", 1, 1, true);
  add("route to one expert undivided", 1, 0, false);
  add("route to all experts divided", 4, 1, false);
  add("route to all experts undivided", 4, 0, true);
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
      {.name = "add images",
       .stages = {{"add_images"}},
       .sizes = "t 24, T 24, B 2, H 3, R 9",
       .attributes = {{"image_token", Integer{7}}},
       .values = {{"0.i2", WithImages(7, 9)}}},
      {.name = "add images over cp",
       .stages = {{"add_images"}},
       .sizes = "t 12, T 24, B 2, H 3, R 9",
       .attributes = {{"image_token", Integer{7}}, {"cp", Integer{2}}, {"zigzag", Integer{1}}},
       .values = {{"0.i2", WithImages(7, 9)}},
       .cp = 2,
       .cp_rank = 1},
      {.name = "split features",
       .stages = {{"split_features"}},
       .sizes = "C 7",
       .attributes = {{"first", Integer{3}}},
       .leading = {6, 4}},
      {.name = "join features",
       .stages = {{"join_features"}},
       .sizes = "A 3, B 4",
       .attributes = {{"first", Integer{3}}},
       .leading = {6, 4}},
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
      {.name = "add linear",
       .stages = {{"add_linear"}},
       .sizes = "o 12, o2 12, R 6",
       .attributes = {{"width", Integer{12}}, {"scale", 1.5}},
       .leading = {6, 4}},
      {.name = "add linear inside",
       .stages = {{"add_linear"}},
       .sizes = "o 24, o2 12, R 6",
       .attributes = {{"width", Integer{12}}, {"first", Integer{6}}, {"scale", 0.75}},
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
      {.name = "gated silu",
       .stages = {{"gated_silu"}},
       .sizes = "f 24, f2 12",
       .attributes = {{"width", Integer{12}}},
       .leading = {6, 4}},
      {.name = "add", .stages = {{"add"}}, .sizes = "", .leading = {6, 4}, .parts_of_f = {6, 6, 6}},
      {.name = "add residual bias", .stages = {{"add_residual_bias"}}, .sizes = "H 7", .leading = {6, 4}},
      {.name = "add bias", .stages = {{"add_bias"}}, .sizes = "H 7", .leading = {6, 4}},
      {.name = "repeat frames",
       .stages = {{"repeat_frames"}},
       .sizes = "F 12, F2 36",
       .attributes = {{"frames", Integer{3}}},
       .leading = {6, 4}},
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
      {.name = "gated experts",
       .stages = {{"gated_experts"}},
       .sizes = "X 14, L 3, H 5, f 12, f2 24",
       .attributes = {{"ffn", Integer{12}}},
       .values = {{"0.i0", Positive()}, {"0.i2", Fixed(at::tensor({2, 0, 4, 1, 5, 2}, at::kLong).view({2, 3}))}}},
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
  AddRoutes(cases);
  AddSoftmaxRoutes(cases);
  AddAttention(cases);
  AddHeads(cases);
  for (const Lane& lane : kLanes) AddLane(lane, false, cases);
  AddLane(kLanes[1], true, cases);
  return cases;
}

}  // namespace

const std::vector<CutLine>& CutLines() { return kCuts; }

const std::vector<OpCase>& Cases() {
  static const std::vector<OpCase> cases = MakeCases();
  return cases;
}

}  // namespace planwright::executor::op_cases
