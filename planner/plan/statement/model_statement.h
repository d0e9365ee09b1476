// The statement of a model: all that is said about a kind of model. It has the constants, the parameters of each piece
// with names, shapes, cuts and initial values, what sizes need, and the computes of each piece, as on one rank. The
// planner makes modules of it (expand_statement.h) and derives their blocks (planner/compile/schedule/derive); verify
// compares modules and blocks with it, by code of its own (V11). The statements are the files of planner/plan/kinds,
// read by parse_statement.h. A new layer kind is added there.
//
// docs/model/notation.md explains every line of the notation. The lines of a text from the first that begins with
// `dialect` are of planner/state/dialect.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "planner/plan/axis.h"
#include "planner/plan/expression.h"
#include "planner/plan/number_range.h"
#include "planner/plan/pixel_norm.h"
#include "planner/plan/plan.h"
#include "planner/plan/table_text.h"

namespace planwright {

// The line of the text that states something; null: no text does.
using StatedLine = std::shared_ptr<const TextLine>;

// Of a word of the line, behind the first `behind`; of the line if it has no such word; unknown without a line.
inline Location PlaceOf(const StatedLine& line, std::string_view word = "", std::string_view behind = "") {
  return line ? line->AtWord(word, behind) : Location();
}

// A kind of layers, or a letter that no model here has.
struct StatedLayer {
  char letter = 0;
  std::string word;      // "mamba": in `recompute` and in tables; empty if it is not built
  std::string title;     // "Mamba-2"
  std::string not_with;  // letters of layers that a pattern with this one, which is not built, has none of
  bool opens = false;    // a layer of this kind begins a block
  StatedLine line;
};

// A key of the recipe, inside a model.
struct StatedKey {
  enum class Form {
    kLayers,    // `pattern` or `layers`
    kSection,   // a map
    kConstant,  // the number of the constant of this name
    kChoice,    // one of the words for the numbers of `sets`
    kNumber,    // no constant
  };
  enum class Type { kInteger, kReal, kFlag };
  Form form = Form::kConstant;
  std::string name;  // as a path: "mamba.heads"
  std::string help;
  bool required = false;
  char of = 0;                     // kSection: required of a model with such layers
  Type type = Type::kInteger;      // of a number
  NumberRange range = kAnyNumber;  // of a number
  std::string default_text;        // as it is written: "1.0e-6", "0" of a flag; empty: there is none
  std::vector<std::pair<std::string, int64_t>> words;  // kChoice
  std::string sets;                                    // kChoice: the constant
  // The choice of which one of these words must be chosen, or the key has no effect. Empty: it has one always.
  std::string with;
  std::vector<std::string> with_words;
  StatedLine line;
};

struct StatedConstant {
  std::string name;
  bool real = false, flag = false, or_zero = false;
  bool given = false;  // other modules settle it
  char of = 0;         // only modules with a layer of this kind have it; 0: all modules of the model kind
  std::optional<Expression> otherwise;  // the number of a module that lacks it
  StatedLine line;
};

struct StatedNumber {
  std::string name;
  Expression formula;
  StatedLine line;
};

struct StatedWeight {
  enum class Form { kWeight, kExperts, kBuffer };
  Form form = Form::kWeight;
  bool joined = false;  // in the storage of the weight before it, which has the same form
  std::string slot, name, file_prefix;
  std::vector<Expression> shape, segments;
  int cut = -1;             // the dim that tp or expert_tp cuts; -1: none
  bool padded = false;      // tp need not divide the dim
  bool projection = false;  // part of the projection
  bool adapter = false;     // of an adapter (adapted_statement.h): it learns where what it stands on is frozen
  Init::Kind draw = Init::Kind::kZeros;
  std::vector<Expression> numbers;  // of the draw
  std::optional<Expression> when;
  StatedLine line;
};

// A slot of the head that is a storage of the embedding.
struct StatedShare {
  std::string slot, of;  // of: the slot of the embedding
  std::optional<Expression> when;
  StatedLine line;
};

struct StatedNeed {
  enum class Relation { kMultiple, kAtMost, kDivides, kDividesOrMultiple, kAxisAtMost };
  Relation relation{};
  // kDivides, kDividesOrMultiple: their product divides `left`, or may be a multiple of it. kAxisAtMost: the axis.
  std::vector<Axis> axes;
  Expression left;
  std::optional<Expression> right;  // kMultiple, kAtMost, kAxisAtMost
  std::string called;               // what messages call `left`; empty: as it is written
  std::optional<Expression> when;
  StatedLine line;
};

// What a compute says of an attribute: the name of a constant, a formula in brackets, or a text.
struct StatedSetting {
  std::string attribute, text;  // as it is written
  std::optional<Expression> formula;
};

struct StatedCompute {
  OpKind kind{};
  std::vector<std::string> inputs, slots, outputs;  // as they are written: "rows*", "bias?"
  std::vector<StatedSetting> settings;
  std::optional<Expression> when;
  bool each = false;
  StatedLine line;

  const StatedSetting* FindSetting(std::string_view attribute) const;  // null: the line sets no such attribute
};

// The name of a slot without its mark: "bias" of "bias?".
std::string PlainSlot(std::string_view slot);

struct StatedProbe {
  std::string value, name;
  std::optional<Expression> when;
  StatedLine line;
};

// The type of the residual stream, or of a value that pieces are given.
struct StatedType {
  using Size = std::variant<Expression, std::string>;  // a formula, or the name of a run-time size: "documents"
  std::optional<DType> dtype;                          // none: that of the plan
  bool host = false;
  std::vector<Size> sizes;
  int cut = -1;  // the dim that is cut over `over`; -1: none
  std::vector<Axis> over;
  bool learns = false;  // it takes a gradient
  StatedLine line;
};

// A value that travels beside the residual stream: a piece takes it by naming it among its inputs, and gives it on by
// naming it among its outputs. Every other piece is passed by. One kind of layers does so, the taps, and beside them
// the embedding may give carries and the head take them.
struct StatedCarry {
  std::string name;      // as pieces name it: "deep"; "later*": one for each encoder
  StatedType type;       // the formulas of its sizes may use `count`: how many taps stand before
  bool partial = false;  // the ranks along tp and cp hold terms of its gradient, which is summed where it was made
};

struct StatedPiece {
  std::string prefix;
  std::vector<StatedWeight> weights;
  std::vector<StatedShare> shared;
  std::vector<StatedNeed> needs;
  std::vector<std::string> inputs, outputs;
  std::vector<StatedCompute> computes;
  std::string counts;
  std::map<std::string, std::vector<std::string>> parts;  // by value
  std::vector<StatedProbe> probes;
  std::vector<std::string> overlap_forward, overlap_backward;  // "OP" or "OP.VALUE"
  // The lines `piece`, `prefix`, `inputs`, `outputs`, `counts` and `order`.
  StatedLine line, prefix_line, inputs_line, outputs_line, counts_line, forward_line, backward_line;
  bool whole = true;  // false: some line of it could not be read
};

// How images of an encoder are made where nobody says it, in the words of `data` (resize_words.h).
struct StatedImages {
  std::string resize, grid;
  int64_t least_pixels = 0;  // of an image that is resized; 0: the rule of sizes has no such bound
  bool processor = false;    // preprocessor_config.json of the encoder's folder says it where there is one
  StatedLine line;
};

// What a first recipe has for a key of an encoder that comes from a folder of its own, without a projector.
struct StatedFirst {
  std::string key;
  std::optional<Expression> formula;  // over keys, and output.hidden; none: `word`
  std::string word;                   // of a choice
  StatedLine line;
};

struct ModelStatement {
  std::string kind;
  std::shared_ptr<const std::string> file;  // what messages call its text
  bool has_images = false, carries_loss = false;
  std::string pixels = std::string(kClipNorm.name);  // by what those of images are normalized (pixel_norm.h)
  // Of encoders in first recipes (`plan init`). Without a line for it the module has the name that stands here.
  std::string first_module = "vision_encoder";
  StatedLine first_module_line;
  std::optional<StatedImages> first_images;
  std::vector<StatedFirst> firsts;
  std::vector<StatedLayer> layer_kinds, unbuilt;  // in the order of the lines, and so are the keys
  std::string repeated;  // the letters that come as often as `layers` says; empty: recipes have no such key
  std::string example;   // of a pattern
  std::vector<StatedKey> keys;
  std::vector<StatedConstant> constants;
  std::vector<StatedNumber> lets;
  StatedType stream;
  bool zigzag = false;  // cp cuts positions zigzag
  std::vector<StatedCarry> carries;
  std::map<std::string, StatedType> given;
  std::vector<std::pair<std::string, std::string>> gathered;  // run-time sizes: of a rank's part, of all parts
  std::vector<StatedNumber> sizes;                            // run-time sizes on one rank
  StatedPiece embed, head;
  std::map<char, StatedPiece> layers;
  bool whole = true;  // false: some line of no piece could not be read

  // Null: recipes have no such key. Of the layers it is `layers` or `pattern`.
  const StatedKey* FindKey(std::string_view name) const;
  // Null: no such kind of layers.
  const StatedLayer* FindLayer(char letter) const;
  const StatedLayer* FindLayer(std::string_view word) const;
  // As pieces name it; null: it is no carry.
  const StatedCarry* FindCarry(std::string_view name) const;
  // The letter of the layers that take or give carries; 0: none do.
  char TapLetter() const;
  // The section with the sizes of such layers; null: they have none of their own.
  const StatedKey* SectionOf(char letter) const;

  // The number of a constant that a module with `others` lacks (`else`); NaN: it must have it, or this is none.
  double NumberWithout(std::string_view constant, const Attributes& others) const;
  // Whether layers of this kind have experts: stacks of weights (lines `experts`). False if there are no such layers.
  bool HasExperts(char letter) const;
};

// What {layer}, {block} and {tap} in names of a layer stand for, each from 0. Layers before the first one that opens a
// block are a block too.
struct LayerPlace {
  int64_t layer = 0, block = 0, tap = 0;
};
// Of each layer, in order.
std::vector<LayerPlace> PlacesOf(const ModelStatement& statement, const std::vector<LayerSummary>& layers);
// The name with these numbers.
std::string NameAt(const LayerPlace& place, std::string_view name);

// The statements of the kinds that come with this program, in the order in which pages and messages list kinds.
std::span<const ModelStatement> BuiltInStatements();

// The statement of a model kind ("hybrid_lm"); null if there is none.
const ModelStatement* StatementOf(std::string_view kind);

// The statement of a module: that of its kind, rewritten where the module has adapters (adapted_statement.h). Each one
// is made once in a process. Null if there is no such kind.
const ModelStatement* StatementOf(const Module& module);

// The word of a layer of this module, as `recompute` takes it and tables show it; empty: its kind has no such layers.
std::string_view LayerWordOf(const Module& module, char letter);

// Whether a parameter of an encoder is one of its projector: of `part projection` in the statement.
bool IsProjection(const Module& module, const Parameter& parameter);

// The word of `recompute` that is no kind of layers: of all layers, what is elementwise runs again (ops.def).
inline constexpr std::string_view kElementwise = "elementwise";

// The numbers that the formulas of a statement are evaluated with, for one module: its constants, axes and `let` names.
class ModelNumbers {
 public:
  // The layers of `module` need no more than their kinds. Keeps a reference to `statement`.
  ModelNumbers(const Budget& budget, const Module& module, const ModelStatement& statement);

  // These numbers as of the module on one rank, with the sizes that the data decides: samples, and run-time sizes.
  ModelNumbers OnOneRank(const std::map<std::string, double>& data) const;

  // These numbers as of a layer that is tap number `tap`, from 0. Without this they are those of the first one.
  ModelNumbers AtTap(int64_t tap) const;
  // How many taps stand before the piece, and before what comes behind it.
  int64_t TapsBefore(const StatedPiece& piece) const;
  int64_t TapsBehind(const StatedPiece& piece) const;
  const ModelStatement& statement() const { return *statement_; }
  // These numbers for the sizes of a carry before which so many taps stand.
  ModelNumbers Counting(int64_t count) const;

  // The number of a name; NaN if the module does not have it.
  double operator()(std::string_view name) const;
  double Of(const Expression& formula) const { return formula.Evaluate(*this); }
  // Whether what has this condition exists.
  bool Hold(const std::optional<Expression>& when) const { return !when || Of(*when) != 0; }
  // The slots that a compute of the piece reads: of those with the mark `?` the ones whose weight exists. Without
  // marks.
  std::vector<std::string> SlotsOf(const StatedPiece& piece, const StatedCompute& compute) const;
  // The number of a formula, or of a constant; NaN of a text.
  double Of(const StatedSetting& setting) const {
    return setting.formula ? Of(*setting.formula) : (*this)(setting.text);
  }
  // The formula as a size; -1 if it is negative, too large or NaN.
  int64_t SizeOf(const Expression& formula) const;
  std::vector<int64_t> SizesOf(const std::vector<Expression>& formulas) const;
  // The weights in a slot of the piece, which a compute reads as one operand: its own, or those of the embedding.
  // Empty: the piece has no such slot in this case.
  std::vector<const StatedWeight*> WeightsOf(const StatedPiece& piece, std::string_view slot) const;

 private:
  void AddLets();

  const ModelStatement* statement_;
  std::map<std::string, double, std::less<>> numbers_;
};

}  // namespace planwright
