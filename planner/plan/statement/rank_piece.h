// A piece of a statement as on one rank: its computes, with the shapes of what they read and make. The shapes follow
// from those of the piece's inputs (lines `stream` and `given`) and weights, by the index notation of ops.def and its
// lines `size`. Dims that these leave open are run-time sizes (its lines `rows`).
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/instruction.h"
#include "planner/plan/op_signature.h"
#include "planner/plan/statement/model_statement.h"

namespace planwright {

// "[3,8]"
std::string ShapeText(const std::vector<double>& shape);

class RankPiece {
 public:
  using Shape = std::vector<double>;

  struct Compute {
    const StatedCompute* stated = nullptr;
    // Kind, operands, slots and integer attributes. A kind that layouts have in place of another (on_one_rank) is that
    // other one here.
    Instruction instruction;
    std::vector<Shape> inputs, slots, outputs;
  };

  // Weights and computes of which `when` does not hold by `numbers` are left out. Shapes are those on one rank all the
  // same.
  // `data`: samples, and the run-time sizes that the data decides: documents and image_rows* of a language model,
  // images and patches of an encoder.
  RankPiece(const ModelStatement& statement, const StatedPiece& piece, const ModelNumbers& numbers,
            const std::map<std::string, double>& data);

  const std::vector<Compute>& computes() const { return computes_; }
  // What does not fit: operands of a wrong number or of wrong sizes, names that are not there or there twice.
  const TextProblems& problems() const { return problems_; }
  // Null: no active compute and no input has the name.
  const Shape* shape(const std::string& value) const;
  // The shape of a carry before which so many taps stand. Without features, its last size, it is not there.
  Shape ShapeOf(const StatedCarry& carry, int64_t count) const;
  // Whether this is the shape of the residual stream.
  bool IsStream(const Shape& shape) const;

 private:
  void AddSlots(const StatedPiece& piece, const ModelNumbers& numbers);
  // One more weight in a slot. `where`: the name of the slot in the line that says so.
  void AddToSlot(const std::string& slot, const StatedWeight& weight, const Location& where);
  void Add(const StatedCompute& stated, std::vector<std::string> slots);
  void Define(const std::string& value, Shape shape, const StatedLine& line);
  std::vector<Shape> ShapesOf(const std::vector<std::string>& names, const std::map<std::string, Shape>& known,
                              std::string_view what, const Compute& compute);
  const StatedType* GivenType(const std::string& input) const;
  static Shape ShapeOf(const StatedType& type, const ModelNumbers& numbers);
  double Counted(const Compute& compute, const SignatureDim& dim);
  Attributes AttributesOf(OpKind kind, const StatedCompute& stated) const;
  // Told at a word of the compute's line. `from`: the lines that state what it reads there.
  void Problem(const Compute& compute, std::string_view word, const std::string& text, std::vector<Location> from);

  const ModelStatement& statement_;
  const ModelNumbers numbers_;  // on one rank
  std::map<std::string, Shape> values_, slots_;
  std::map<std::string, std::vector<Location>> value_lines_, slot_lines_;
  std::map<std::string, std::vector<Location>> absent_;  // values and slots of other cases: what would make them
  std::set<std::string> doubtful_;                       // values of computes that have a problem: no shape is known
  std::vector<Compute> computes_;
  TextProblems problems_;
  double unknown_ = 0;  // the last size of which nothing is known: each has a negative number of its own
};

}  // namespace planwright
