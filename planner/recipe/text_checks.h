// What is checked of a recipe's bytes before the YAML parser sees them.
#pragma once

#include <string>

#include "planner/diagnostics/diagnostic.h"
#include "planner/recipe/yaml_tree.h"

namespace planwright {

// Size, encoding, hidden controls and tabs in indentation. False if the text must not be parsed.
bool CheckText(const std::string& text, const YamlOrigin& origin, Diagnostics& problems);

// Byte behind the quote that closes the one at text[at], or npos if none does.
size_t EndOfQuoted(const std::string& text, size_t at);

// The first quote before byte `end` that opens a value and is not closed on its line, or npos: what most often lies
// behind a syntax error further down.
size_t FirstOpenQuote(const std::string& text, size_t end);

// Place of byte `at` of a text that starts at `origin`.
Location PlaceOfByte(const std::string& text, size_t at, const YamlOrigin& origin);

}  // namespace planwright
