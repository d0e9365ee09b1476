// Any texts as statements of models: random ones, and damaged copies of those of this program.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace planwright::testing {

// The texts of the statements of this program, without dialects.
std::vector<std::string> StatementTexts();

// The text with a few changes: lines left out, doubled or exchanged; words replaced by others of the text, by edge
// values or by marks; characters inserted, deleted or replaced.
std::string DamagedText(const std::string& text, std::mt19937& random);

// Parses the text and checks the statement. Stops the program unless each problem has its place in the text and can be
// printed, and, where there is no problem, the numbers of a module can be computed. Returns whether there is none.
bool TryStatement(const std::string& text);

}  // namespace planwright::testing
