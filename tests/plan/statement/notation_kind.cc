#include "tests/plan/statement/notation_kind.h"

#include <map>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "planner/plan/statement/adapted_statement.h"
#include "planner/plan/statement/parse_statement.h"
#include "tests/plan/statement/toy_kind.h"

namespace planwright::testing {
namespace {

constexpr std::string_view kAdapted = "adapted_";

constexpr char kText[] = R"(
kind notation
can has_images
layer A norm opens: norm that is added to the stream
layer V mixer: mixer
layers AV: blocks of a norm and a mixer
constant hidden int: width of the stream
constant ffn int: width inside a mixer
constant norm_eps real: epsilon of the norms
constant biased flag: whether the first product of a mixer has a bias
constant rough flag: whether the activation of a mixer is the tanh form of GELU
constant init_std real: standard deviation of initial weights
first images resize bicubic_8bit grid smart_resize from 64 or processor
first ffn is 4 * hidden

let exact = 1 - rough

stream [.tokens, hidden] cut 0 over cp
given patches [.patches, hidden] cut 0 over cp
given image_grid int64 host [.images, 2]
gathered tokens lane_tokens
gathered part_image_rows image_rows
size tokens = patches
size image_rows = patches

piece embed
  weight embed embed.weight [hidden, hidden] normal [init_std]
  inputs patches
  x = linear patches [embed]
  outputs x

piece A
  prefix blocks.{block}.norms.{tap}.
  weight norm weight [hidden] ones
  inputs x
  n n_scale = rms_norm x [norm] eps (norm_eps)
  x_out = add x n
  outputs x_out
  probe x_out notation.block{block}.norm

piece V
  prefix blocks.{block}.
  weight norm norm.weight [hidden] ones
  weight up up.weight [ffn, hidden] cut 0 normal [init_std]
  when biased: weight up_bias up.bias [ffn] cut 0 zeros
  weight down down.weight [hidden, ffn] cut 1 normal [init_std]
  needs tp divides ffn
  inputs x
  n n_scale = rms_norm x [norm] eps (norm_eps)
  u = linear n [up up_bias?]
  g = gelu u [] erf (exact)
  d = linear g [down]
  x_out = add x d
  outputs x_out
  probe x_out notation.block{block}.out

piece head
  weight out out.weight [hidden, hidden] normal [init_std]
  inputs x
  o = linear x [out]
  rows = gelu o [] erf (1)
  outputs rows
)";

}  // namespace

const std::string& NotationText() {
  static const std::string text = kText;
  return text;
}

const ModelStatement& NotationStatement() {
  static const ModelStatement statement = StatementOfText(NotationText());
  return statement;
}

ModelStatement StatementOfText(const std::string& text) {
  ParsedStatement parsed = ParseStatement("notation.model", text);
  if (!parsed.problems.empty()) throw std::invalid_argument(ProblemsText(parsed.problems));
  return std::move(parsed.statement);
}

const ModelStatement& StatementNamed(const std::string& kind) {
  static const ModelStatement toy = StatementOfText(ToyKind());
  if (kind == "toy") return toy;
  if (kind.starts_with(kAdapted)) {
    static std::map<std::string, ModelStatement> adapted;
    const ModelStatement& plain = StatementNamed(kind.substr(kAdapted.size()));
    return adapted.try_emplace(kind, AdaptedStatement(plain, {"q_proj", "v_proj", "in_proj", "qkv", "fc2"}))
        .first->second;
  }
  const ModelStatement* built_in = StatementOf(kind);
  if (built_in == nullptr && kind != NotationStatement().kind) throw std::invalid_argument("no kind " + kind);
  return built_in ? *built_in : NotationStatement();
}

}  // namespace planwright::testing
