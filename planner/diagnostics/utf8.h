// UTF-8 as recipes and messages need it: is it valid, and is it safe to show in a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace planwright {

// Bytes of the well-formed code point at text[at] (1 to 4), or 0 if the bytes there are not UTF-8. Overlong forms and
// surrogates are not well formed.
size_t CodePointLength(std::string_view text, size_t at);

// Whether the code point at text[at], `length` bytes long, changes what a reader sees without being seen itself:
// control characters other than tab, line feed and carriage return, and bidirectional overrides.
bool IsHiddenControl(std::string_view text, size_t at, size_t length);

// `text` with invalid bytes, controls and line breaks written as \xNN, for messages.
std::string Printable(std::string_view text);

// Printable, cut to about `limit` bytes, in double quotes.
std::string Quoted(std::string_view text, size_t limit = 60);

}  // namespace planwright
