// Reads the lines of a statement that belong to a piece, one after the other.
#pragma once

#include <optional>
#include <string>

#include "planner/plan/statement/model_statement.h"

namespace planwright {

class PieceParser {
 public:
  // The lines that follow are of `piece`. Null: the line `piece` is wrong, and they are read for what is wrong with
  // them alone.
  void Start(StatedPiece* piece, const LineReader& line);
  // The prefix of published files from here on.
  void SetFile(std::string prefix) { file_ = std::move(prefix); }
  void ParseLine(LineReader& line);
  StatedPiece* piece() { return piece_; }  // null: no line `piece` came so far

 private:
  void ParseConditional(LineReader& line);
  void ParseWeight(LineReader& line, StatedWeight::Form form, std::optional<Expression> when);
  void ParseJoined(LineReader& line);
  void AddWeight(LineReader& line, StatedWeight weight);
  void ParseShared(LineReader& line, std::optional<Expression> when);
  void ParseNeed(LineReader& line, std::optional<Expression> when);
  void ParseValues(LineReader& line, std::vector<std::string>& values, StatedLine& at);
  void ParseCounts(LineReader& line);
  void ParseSplit(LineReader& line);
  void ParseProbe(LineReader& line, std::optional<Expression> when);
  void ParseOrder(LineReader& line);
  void ParseCompute(LineReader& line, std::optional<Expression> when);

  StatedPiece unnamed_;
  StatedPiece* piece_ = nullptr;  // none yet
  std::string file_;
  bool projection_ = false;
};

}  // namespace planwright
