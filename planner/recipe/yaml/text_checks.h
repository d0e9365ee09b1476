// Checks of the text of a recipe before the YAML parser reads it. They find problems that the parser would accept, or
// would report with a message that does not help.
#pragma once

#include <string>
#include <string_view>

#include "planner/recipe/diagnostics/diagnostic.h"
#include "planner/recipe/yaml/yaml_tree.h"

namespace planwright {

// Checks size, encoding, hidden control characters and tabs in the indentation. False if the text must not be parsed.
bool CheckText(const std::string& text, const YamlOrigin& origin, Diagnostics& problems);

// The byte after the quote that closes the one at text[at]; npos if none does.
size_t EndOfQuoted(std::string_view text, size_t at);

// The first quote before byte `end` that opens a value and is not closed on its line; npos if there is none. It is the
// most frequent cause of a syntax error on a later line.
size_t FirstOpenQuote(const std::string& text, size_t end);

// The location of byte `at` of a text that starts at `origin`.
Location LocationOfByte(const std::string& text, size_t at, const YamlOrigin& origin);

}  // namespace planwright
