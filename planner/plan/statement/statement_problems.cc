#include "planner/plan/statement/statement_problems.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "planner/base/text/limits.h"
#include "planner/base/text/text.h"
#include "planner/plan/statement/compute_rules.h"
#include "planner/plan/statement/key_rules.h"
#include "planner/plan/statement/piece_judge.h"
#include "planner/plan/statement/prime_module.h"
#include "planner/plan/statement/problem_list.h"
#include "planner/plan/statement/stated_names.h"

namespace planwright {
namespace {

using std::string;

// Each kind of layers that opens a block with each of the others in it, twice. Those others may be alternatives of one
// name, of which a block has one: recipes are held to that (PW0502).
std::vector<LayerSummary> LayersInBlocks(const ModelStatement& statement) {
  std::vector<LayerSummary> opening, inside, layers;
  for (const auto& [letter, piece] : statement.layers) {
    const StatedLayer* kind = statement.FindLayer(letter);
    (kind && kind->opens ? opening : inside).push_back({.kind = letter});
  }
  if (opening.empty() || inside.empty()) {
    layers = opening.empty() ? inside : opening;
  } else {
    for (const LayerSummary& first : opening) {
      for (const LayerSummary& second : inside) layers.insert(layers.end(), {first, second});
    }
  }
  const std::vector<LayerSummary> once = layers;
  layers.insert(layers.end(), once.begin(), once.end());
  return layers;
}

// What is in braces in a name that is not known there: "{blok}" in "layers.{blok}."; "" if all is.
string UnknownPlace(const string& name, bool of_layer) {
  for (size_t at = name.find('{'); at != string::npos; at = name.find('{', at + 1)) {
    const string place = name.substr(at, name.find('}', at) - at + 1);
    if (!of_layer || (place != "{layer}" && place != "{block}" && place != "{tap}")) return place;
  }
  return "";
}

// The names of a piece's prefix and probes have nothing in braces that is not known there.
void CheckPlaces(const string& name, const StatedPiece& piece, ProblemList& problems) {
  const bool of_layer = KindOfPiece(name) != 0;
  const auto check = [&](const StatedLine& line, const string& text, const char* what) {
    const string unknown = UnknownPlace(text, of_layer);
    if (unknown.empty()) return;
    const char* known = of_layer ? "only {layer}, {block} and {tap} are known" : "there is no layer";
    problems.Add(PlaceOf(line, text), Cat("piece ", name, ": ", what, " has ", unknown, ", and ", known, " here"));
  };
  check(piece.prefix_line, piece.prefix, "the prefix");
  for (const StatedProbe& probe : piece.probes) check(probe.line, probe.name, "the name of a probe");
}

// Names of weights in files and in plans, and of probes.
void JudgePublished(const ModelStatement& statement, Module module, ProblemList& problems) {
  module.layers = LayersInBlocks(statement);
  const ModelNumbers numbers({.sequence_length = kPrimeSequence}, module, statement);
  std::set<string> in_files, in_plans, probed;
  const auto add = [&](const StatedPiece& piece, const LayerPlace& place) {
    const string prefix = NameAt(place, piece.prefix);
    for (const StatedProbe& probe : piece.probes) {
      const string name = NameAt(place, probe.name);
      if (piece.whole && numbers.Hold(probe.when) && !probed.insert(name).second)
        problems.Add(PlaceOf(probe.line, probe.name), Cat("two values are probed as ", name));
    }
    for (const StatedWeight& weight : piece.weights) {
      if (!piece.whole || !numbers.Hold(weight.when)) continue;
      const string name = prefix + weight.name;
      const string file = absl::StrReplaceAll(weight.file_prefix, {{"{encoder}", ""}}) + name;
      if (!in_files.insert(file).second || !in_plans.insert(name).second)
        problems.Add(PlaceOf(weight.line, weight.name), Cat("two weights are published as ", file));
    }
  };
  const std::vector<LayerPlace> places = PlacesOf(statement, module.layers);
  add(statement.embed, {});
  for (size_t i = 0; i < places.size(); ++i) add(statement.layers.at(module.layers[i].kind), places[i]);
  add(statement.head, {});
}

// The rows of the stream have a name where those of all ranks are together.
void JudgeStream(const ModelStatement& statement, ProblemList& problems) {
  const StatedType& stream = statement.stream;
  if (!stream.line) return problems.Add(BeginOf(statement), "the statement has no line `stream`");
  if (stream.cut < 0) return;
  const string* part = std::get_if<string>(&stream.sizes[static_cast<size_t>(stream.cut)]);
  const bool named = !part || std::any_of(statement.gathered.begin(), statement.gathered.end(),
                                          [&](const auto& gathered) { return gathered.first == *part; });
  if (!named)
    problems.Add(PlaceOf(stream.line, "." + *part),
                 Cat("the stream is cut over ranks, and no line `gathered` names the ", *part, " of all ranks"));
}

// Pieces and lines that each model has.
void JudgePieceLines(const ModelStatement& statement, ProblemList& problems) {
  const Location begin = BeginOf(statement);
  if (statement.layers.empty()) problems.Add(begin, "the statement has no piece of a layer");
  for (const auto& [name, piece] : PiecesOf(statement)) {
    if (!piece->line) {
      problems.Add(begin, Cat("the statement has no piece ", name));
    } else if (piece->whole && !piece->inputs_line) {
      problems.Add(PlaceOf(piece->line, name), Cat("the piece ", name, " has no line `inputs`"));
    }
  }
}

// Which pieces take and give carries, whatever the sizes are.
void JudgeCarries(const ModelStatement& statement, ProblemList& problems) {
  const char taps = statement.TapLetter();
  std::set<string> named;
  for (const auto& each : PiecesOf(statement)) {
    const string& name = each.first;
    const StatedPiece& piece = *each.second;
    const bool embed = &piece == &statement.embed, head = &piece == &statement.head;
    for (const bool takes : {true, false}) {
      const StatedLine& line = takes ? piece.inputs_line : piece.outputs_line;
      for (const string& value : takes ? piece.inputs : piece.outputs) {
        if (!statement.FindCarry(value)) continue;
        named.insert(value);
        const auto problem = [&](const string& text) { problems.Add(PlaceOf(line, value), Cat("piece ", name, text)); };
        if (embed && takes) problem(Cat(" takes the carry ", value, ", which nothing has made before it"));
        if (head && !takes) problem(Cat(" returns the carry ", value, ", which nothing takes behind it"));
        if (!embed && !head && name[0] != taps)
          problem(Cat(" names the carry ", value, ", and so does piece ", string(1, taps),
                      ": one kind of layers takes and gives carries"));
      }
    }
  }
  for (const StatedCarry& carry : statement.carries) {
    if (!named.contains(carry.name))
      problems.Add(PlaceOf(carry.type.line, carry.name), Cat("no piece names the carry ", carry.name));
  }
}

// What a piece returns: the stream, and behind it carries as their lines say. The head returns what leaves the model.
void JudgeOutputs(const ModelStatement& statement, const string& name, const StatedPiece& piece,
                  const RankPiece& ranked, const ModelNumbers& numbers, ProblemList& problems) {
  const StatedLine& line = piece.outputs_line ? piece.outputs_line : piece.line;
  const RankPiece::Shape* stream = piece.outputs.empty() ? nullptr : ranked.shape(piece.outputs.front());
  if (!stream || !ranked.IsStream(*stream))
    return problems.Add(PlaceOf(line), Cat("piece ", name, " does not return the stream"));
  const StatedCarry* before = nullptr;
  for (size_t i = 1; i < piece.outputs.size(); ++i) {
    const string& output = piece.outputs[i];
    const StatedCarry* carry = statement.FindCarry(output);
    if (carry && before && carry <= before)
      problems.Add(PlaceOf(line, output), Cat("piece ", name, " returns ", output, " behind ", before->name,
                                              ", and their lines stand in another order"));
    if (carry) before = carry;
    if (!carry) {
      problems.Add(
          PlaceOf(line, output),
          Cat("piece ", name, " does not return the stream: behind it come carries alone, and ", output, " is none"));
      continue;
    }
    const RankPiece::Shape wanted = ranked.ShapeOf(*carry, numbers.TapsBehind(piece));
    if (wanted.back() == 0 || *ranked.shape(output) == wanted) continue;
    problems.Add(PlaceOf(line, output),
                 Cat("piece ", name, " returns ", output, " ", ShapeText(*ranked.shape(output)), ", not ",
                     ShapeText(wanted), " as the line carry says"),
                 {PlaceOf(carry->type.line, carry->name)});
  }
}

// Judges one piece of the module; of layers that take carries, number `tap`.
void JudgePiece(const ModelStatement& statement, const Module& module, const string& name, const StatedPiece& piece,
                ProblemList& problems, int64_t tap = 0) {
  const ModelNumbers numbers = ModelNumbers({.sequence_length = kPrimeSequence}, module, statement).AtTap(tap);
  ProblemList found;
  PieceJudge judge(statement, name, piece, numbers, found);
  judge.Judge();
  if (found.empty()) {
    for (const string& input : piece.inputs) {
      if (judge.ranked().shape(input) && !judge.Reads(input))
        found.Add(PlaceOf(piece.inputs_line, input), Cat("piece ", name, ": nothing reads the input ", input));
    }
    if (&piece != &statement.head) JudgeOutputs(statement, name, piece, judge.ranked(), numbers, found);
  }
  problems.AddCase(found);
}

// The largest tp of a piece that has something which tp may be a multiple of, such as key heads: what its other lines
// let tp divide. 0: it has nothing, or the largest is no multiple.
double LargestShared(const ModelStatement& statement, const Module& module, const StatedPiece& piece) {
  const ModelNumbers numbers({.sequence_length = kPrimeSequence}, module, statement);
  const StatedNeed* shared = nullptr;
  double largest = 0;  // none yet
  for (const StatedNeed& need : piece.needs) {
    if (std::find(need.axes.begin(), need.axes.end(), Axis::kTp) == need.axes.end()) continue;
    const double left = numbers.Of(need.left);
    if (need.relation == StatedNeed::Relation::kDividesOrMultiple) {
      shared = &need;
    } else if (left >= 1 && left <= static_cast<double>(kLargestNumber)) {
      largest = static_cast<double>(std::gcd(static_cast<int64_t>(largest), static_cast<int64_t>(left)));
    }
  }
  const double parts = shared ? numbers.Of(shared->left) : 0;
  return parts >= 1 && largest > parts && std::fmod(largest, parts) == 0 ? largest : 0;
}

// How many taps a module has.
int64_t TapsOf(const ModelStatement& statement, const Module& module) {
  const char letter = statement.TapLetter();
  return std::count_if(module.layers.begin(), module.layers.end(),
                       [&](const LayerSummary& layer) { return letter != 0 && layer.kind == letter; });
}

// The pieces that a module without taps has, too.
void JudgeWithoutTaps(const ModelStatement& statement, const std::set<string>& pieces, Module module,
                      ProblemList& problems) {
  const char letter = statement.TapLetter();
  if (letter == 0) return;
  std::erase_if(module.layers, [&](const LayerSummary& layer) { return layer.kind == letter; });
  for (const auto& [name, piece] : PiecesOf(statement)) {
    if (pieces.contains(name) && KindOfPiece(name) != letter) JudgePiece(statement, module, name, *piece, problems);
  }
}

// Judges all pieces in every case of what `when` may ask of the layout and of what is trained.
void JudgePieces(const ModelStatement& statement, const std::set<string>& pieces, Module& module,
                 ProblemList& problems) {
  for (int which = 0; which < 8 && !problems.full(); ++which) {
    module.trains_backbone = module.trains_projection = (which & 1) == 0;
    module.dispatch = (which & 2) == 0 ? "all_to_all" : "all_gather";
    // Every axis divides what it must, or none does.
    const bool cut = (which & 4) != 0;
    const auto size = [&](Axis axis) { return cut ? PrimeOf(axis) : 1; };
    module.grid.tp = size(Axis::kTp), module.grid.cp = size(Axis::kCp), module.grid.ep = size(Axis::kEp);
    module.grid.expert_tp = size(Axis::kExpertTp);
    for (const auto& [name, piece] : PiecesOf(statement)) {
      const bool taps = statement.TapLetter() != 0 && KindOfPiece(name) == statement.TapLetter();
      for (int64_t tap = 0; pieces.contains(name) && tap < (taps ? TapsOf(statement, module) : 1); ++tap)
        JudgePiece(statement, module, name, *piece, problems, tap);
    }
    JudgeWithoutTaps(statement, pieces, module, problems);
  }
  // Pieces with something that several ranks share, as on the largest layout.
  for (const auto& [name, piece] : PiecesOf(statement)) {
    const double tp = pieces.contains(name) ? LargestShared(statement, module, *piece) : 0;
    if (tp <= 1 || tp > static_cast<double>(kMostRanks)) continue;
    Module shared = module;
    shared.grid.tp = static_cast<int>(tp), shared.grid.cp = 1;
    JudgePiece(statement, shared, name, *piece, problems);
  }
}

}  // namespace

TextProblems StatementProblems(const ModelStatement& statement) {
  if (!statement.whole) return {};  // nothing is known of names
  ProblemList problems;
  const StatedNames names(statement);
  CheckModelNames(statement, names, problems);
  JudgeStream(statement, problems);
  JudgeCarries(statement, problems);
  // Without the numbers of the model nothing is known about sizes.
  const bool sized = problems.empty();
  std::set<string> pieces;  // those whose sizes are known
  for (const auto& [name, piece] : PiecesOf(statement)) {
    if (!piece->whole || !piece->line) continue;  // one that is absent is told below
    ProblemList found;
    CheckPieceNames(*piece, KindOfPiece(name), names, found);
    if (found.empty()) pieces.insert(name);
    CheckComputes(statement, name, *piece, names, found);
    CheckPlaces(name, *piece, found);
    problems.AddCase(found);
  }
  JudgePieceLines(statement, problems);
  CheckKeys(statement, names, problems);
  const std::vector<const StatedConstant*> tried = TriedConstants(statement);
  if (tried.size() > kMostTriedConstants)
    problems.Add(PlaceOf(tried[kMostTriedConstants]->line, tried[kMostTriedConstants]->name),
                 Cat("at most ", kMostTriedConstants,
                     " constants may be flags that a module may lack, or be named by conditions and settings and "
                     "be 0"));
  if (!sized || tried.size() > kMostTriedConstants) return problems.Problems();
  const Module prime = PrimeModule(statement, 2);
  for (Module& module : PrimeModules(statement, 2)) JudgePieces(statement, pieces, module, problems);
  JudgePublished(statement, prime, problems);
  return problems.Problems();
}

}  // namespace planwright
