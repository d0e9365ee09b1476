// The texts of the tables of this room (ops.def, states.def): how their entries are split into lines and words, and how
// the pages that are generated from them are wrapped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planwright {

// The lines of an entry, with continuation lines (four spaces or more) joined to the line that they continue.
std::vector<std::string> LogicalLines(std::string_view entry);

// The first word of `rest`, taken off it.
std::string TakeWord(std::string& rest);

// The text after the keyword `word`, cut off `rest` together with the keyword; false if the keyword is absent.
bool TakeAfterKeyword(std::string_view word, std::string& rest, std::string& after);

// Appends words of `text` in lines of at most 120 columns, which all but the first begin with `indent`.
void AppendWrapped(std::string_view text, std::string_view indent, std::string& page);

}  // namespace planwright
