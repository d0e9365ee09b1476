// Reads the lines of a statement that say what recipes give of such a model: layers, sections and keys.
#pragma once

#include <string_view>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

class KeyParser {
 public:
  // Keeps a reference to `model`, which gets what is read.
  explicit KeyParser(ModelStatement& model) : model_(model) {}

  // Whether it is such a line; if so, it is taken but for its end.
  bool ParseLine(LineReader& line);

 private:
  void ParseLayer(LineReader& line);
  void ParseUnbuilt(LineReader& line);
  void ParseLayers(LineReader& line);
  void ParseSection(LineReader& line);
  void ParseConstant(LineReader& line);
  void ParseOtherwise(LineReader& line, StatedConstant& constant) const;
  void ParseChoice(LineReader& line);
  void ParseNumber(LineReader& line);

  bool EachHas(std::string_view name, const StatedConstant& constant) const;

  ModelStatement& model_;
};

}  // namespace planwright
