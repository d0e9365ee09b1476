#include "planner/plan/statement/parse_statement.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "planner/base/text/limits.h"
#include "planner/base/text/near_name.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"
#include "planner/plan/statement/parse_first.h"
#include "planner/plan/statement/parse_keys.h"
#include "planner/plan/statement/parse_piece.h"
#include "planner/plan/statement/take_words.h"
#include "planner/plan/table_text.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// The lines before the first that begins with `dialect`: what follows is of planner/state/dialect.
string_view BeforeDialects(string_view text) {
  constexpr string_view kBegin = "dialect ";
  if (text.starts_with(kBegin)) return {};
  const size_t end = text.find(Cat("\n", kBegin));
  return end == string_view::npos ? text : text.substr(0, end + 1);
}

class StatementParser {
 public:
  ParsedStatement Parse(string_view file, string_view text) {
    model_.file = std::make_shared<string>(file);
    if (text.size() > kLargestStatement) {
      TextProblem& problem = problems_.emplace_back();
      problem.where.file = model_.file, problem.where.line = problem.where.column = 1;
      problem.message = Cat("the text has more than ", kLargestStatement, " bytes");
      return {std::move(model_), std::move(problems_)};
    }
    ReadLines(BeforeDialects(text), file, problems_, [&](LineReader& line) {
      if (++lines_ <= kMostStatementLines) {
        const bool of_piece = ParseLine(line);
        line.NeedEnd();
        if (line.failed()) (of_piece ? piece_.piece()->whole : model_.whole) = false;
      } else if (lines_ == kMostStatementLines + 1) {
        line.Expect(false, Cat("the end of the text: it may have ", kMostStatementLines, " lines"));
      }
    });
    return {std::move(model_), std::move(problems_)};
  }

 private:
  // Returns whether it is a line of a piece.
  bool ParseLine(LineReader& line) {
    if (line.TakeIf("kind")) {
      ParseKind(line);
    } else if (keys_.ParseLine(line)) {
      return false;
    } else if (line.TakeIf("can")) {
      ParseCan(line);
    } else if (line.TakeIf("pixels")) {
      ParsePixels(line);
    } else if (line.TakeIf("first")) {
      ParseFirst(line, model_);
    } else if (line.TakeIf("let")) {
      ParseNumber(line, model_.lets);
    } else if (line.TakeIf("stream")) {
      ParseStream(line);
    } else if (line.TakeIf("carry")) {
      ParseCarry(line);
    } else if (line.TakeIf("given")) {
      ParseGiven(line);
    } else if (line.TakeIf("gathered")) {
      ParseGathered(line);
    } else if (line.TakeIf("size")) {
      ParseNumber(line, model_.sizes);
    } else if (line.TakeIf("file")) {
      piece_.SetFile(line.Take("a prefix of names"));
    } else if (line.TakeIf("piece")) {
      StartPiece(line);
    } else {
      piece_.ParseLine(line);
      return piece_.piece() != nullptr;
    }
    return false;
  }

  // "NAME"
  void ParseKind(LineReader& line) {
    line.Check(lines_ == 1, "`kind` is the first line of the text, and of no other");
    model_.kind = TakeName(line, "the name of a kind of models");
  }

  // "has_images" or "carries_loss"
  void ParseCan(LineReader& line) {
    const string word = line.TakeOneOf({"has_images", "carries_loss"});
    (word == "has_images" ? model_.has_images : model_.carries_loss) = true;
  }

  // "clip" or "half": the names of pixel_norm.h
  void ParsePixels(LineReader& line) {
    line.Check(model_.has_images, "only a model that has_images takes pixels");
    std::vector<string> names;
    for (const PixelNorm& norm : kPixelNorms) names.emplace_back(norm.name);
    const string name = line.Take("by what pixels are normalized");
    if (line.failed()) return;
    if (!FindPixelNorm(name)) return line.RefuseWord(Cat("pixels are not normalized by ", Quoted(name)), names);
    model_.pixels = name;
  }

  // "NAME = FORMULA"
  static void ParseNumber(LineReader& line, std::vector<StatedNumber>& numbers) {
    string name = TakeName(line, "the name of a number");
    line.Need("=");
    numbers.push_back({std::move(name), line.TakeFormula(), line.line()});
  }

  // "[SIZES] [cut DIM over AXES]"
  void ParseSizes(LineReader& line, StatedType& type) {
    type.line = line.line();
    line.Need('[');
    do {
      if (line.Peek().starts_with('.')) {
        type.sizes.emplace_back(line.Take().substr(1));
      } else {
        type.sizes.emplace_back(line.TakeFormula());
      }
    } while (line.TakeIf(','));
    line.Need(']');
    if (!line.TakeIf("cut")) return;
    type.cut = TakeDim(line, type.sizes.size());
    line.Need("over");
    while (const auto axis = AxisFromName(line.Peek())) {
      line.Take();
      line.Check(*axis == Axis::kTp || *axis == Axis::kCp, "a value is cut over tp and cp alone");
      line.Check(std::find(type.over.begin(), type.over.end(), *axis) == type.over.end(), "the axis is there twice");
      type.over.push_back(*axis);
    }
    if (type.over.empty()) RefuseAxis(line);
  }

  // "[SIZES] cut DIM over AXES [zigzag]"
  void ParseStream(LineReader& line) {
    line.Check(!model_.stream.line, "the stream is stated twice");
    ParseSizes(line, model_.stream);
    for (const StatedType::Size& size : model_.stream.sizes) {
      const string* symbol = std::get_if<string>(&size);
      line.Check(!symbol || !symbol->ends_with('*'), "a size for each encoder is of given values alone");
    }
    model_.stream.learns = true;
    model_.zigzag = line.TakeIf("zigzag");
  }

  // "NAME|NAME* [SIZES] [cut DIM over AXES] [partial]"
  void ParseCarry(LineReader& line) {
    StatedCarry carry;
    carry.name = line.Take("the name of a carry");
    const bool each = carry.name.ends_with('*');
    const string plain = carry.name.substr(0, carry.name.size() - (each ? 1 : 0));
    CheckName(line, plain);
    line.Check(plain != "x", "`x` is the stream, beside which carries travel");
    line.Check(!model_.given.contains(plain), Cat("the value ", plain, " is given, and is no carry"));
    line.Check(!model_.FindCarry(plain) && !model_.FindCarry(plain + "*"), Cat("the carry ", plain, " is there twice"));
    ParseSizes(line, carry.type);
    bool of_encoder = false;
    for (const StatedType::Size& size : carry.type.sizes) {
      const string* symbol = std::get_if<string>(&size);
      of_encoder |= symbol && symbol->ends_with('*');
    }
    line.Check(line.failed() || of_encoder == each,
               each ? "a carry for each encoder has a size of one, such as `.image_rows*`"
                    : Cat("what has a size of each encoder is there for each, and is written ", plain, "*"));
    carry.partial = line.TakeIf("partial");
    line.Check(!carry.partial || carry.type.cut < 0, "the gradient of what is cut is cut, and no term of a sum");
    carry.type.learns = true;
    model_.carries.push_back(std::move(carry));
  }

  // "NAME [DTYPE] [host] [SIZES] [cut DIM over AXES] [learns]"
  void ParseGiven(LineReader& line) {
    const string name = TakeName(line, "the name of a given value");
    line.Check(name != "x", "`x` is the stream, which the line `stream` states");
    line.Check(!model_.FindCarry(name) && !model_.FindCarry(name + "*"),
               Cat("the value ", name, " is a carry, and is not given"));
    const auto [given, fresh] = model_.given.try_emplace(name);
    line.Check(fresh, Cat("the value ", name, " is given twice"));
    StatedType type;
    type.dtype = DTypeFromName(line.Peek());
    if (type.dtype) line.Take();
    type.host = line.TakeIf("host");
    ParseSizes(line, type);
    type.learns = line.TakeIf("learns");
    if (fresh) given->second = std::move(type);
  }

  // "SYMBOL WHOLE"
  void ParseGathered(LineReader& line) {
    const string part = TakeName(line, "a run-time size");
    model_.gathered.emplace_back(part, TakeName(line, "the run-time size of all ranks"));
  }

  // "embed|head|KIND"
  void StartPiece(LineReader& line) {
    const string name = line.Take("`embed`, `head` or the letter of a kind of layers");
    if (line.failed()) return piece_.Start(nullptr, line);
    const bool end = name == "embed" || name == "head";
    if (!end && !IsLetterOfLayer(name))
      line.RefuseWord(Cat(Quoted(name), " is no piece: expected `embed`, `head` or the letter of a kind of layers"),
                      {"embed", "head"});
    StatedPiece* piece = name == "embed"  ? &model_.embed
                         : name == "head" ? &model_.head
                         : line.failed()  ? nullptr
                                          : &model_.layers[name[0]];
    line.Check(model_.layers.size() <= kMostLayerKinds,
               Cat("a model has at most ", kMostLayerKinds, " kinds of layers"));
    line.Check(!piece || !piece->line, Cat("the piece ", name, " is there twice"));
    piece_.Start(piece, line);
  }

  ModelStatement model_;
  TextProblems problems_;
  KeyParser keys_{model_};
  PieceParser piece_;
  size_t lines_ = 0;
};

}  // namespace

ParsedStatement ParseStatement(string_view file, string_view text) { return StatementParser().Parse(file, text); }

}  // namespace planwright
