// What lines of a statement are made of: names, axes, numbers of dims, and lists in brackets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/table_text.h"

namespace planwright {

// A name that formulas may have: letters, digits, _ and dots, and no digit in front.
std::string TakeName(LineReader& line, std::string_view what);

// Fails unless `word`, which was taken last, is such a name.
void CheckName(LineReader& line, std::string_view word);

// Whether it is one character that can be seen.
bool IsLetterOfLayer(std::string_view word);
// The letter of a kind of layers.
char TakeKindOfLayer(LineReader& line);

// The number of one of so many dims; -1: it failed.
int TakeDim(LineReader& line, size_t dims);

// What comes next is none of the axes.
void RefuseAxis(LineReader& line);

// The items of "[a b]", and of "[2 * a, b]".
std::vector<std::string> TakeNames(LineReader& line);
std::vector<Expression> TakeFormulaList(LineReader& line);
// "(FORMULA)", with nothing of the formula outside of the brackets.
Expression TakeFormulaInBrackets(LineReader& line);

}  // namespace planwright
