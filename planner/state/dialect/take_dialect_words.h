// What lines of a dialect are made of.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/state/dialect/dialect.h"

namespace planwright {

// "PATH | PATH": one at least.
DialectPaths TakePaths(LineReader& line);

// A value as JSON: "4", "null", "\"silu\"". Only with `words` a word without quotes is one.
std::string TakeValue(LineReader& line, bool words);
bool IsValue(std::string_view word);  // a word is one without quotes around it

double TakeReal(LineReader& line);

// ": TEXT", up to the end of the line.
std::string TakeFreeText(LineReader& line, std::string_view what);

// The words up to one of these, or to a mark.
std::vector<std::string> TakeWordsTo(LineReader& line, std::initializer_list<std::string_view> ends);

// The letter of a kind of layers that the model has.
char TakeLetter(LineReader& line, const ModelStatement& statement);
// "[of LETTER]", such a letter; 0 without it.
char TakeOfLayer(LineReader& line, const ModelStatement& statement);

// Reads lines of tensors. Whether it is such a line.
bool ParseTensorLine(LineReader& line, Dialect& dialect);

}  // namespace planwright
