// Checks of UTF-8 text: whether it is valid, and whether it is safe to print. A recipe may come from an untrusted
// source; its text must not move the cursor of a terminal, or look different from what it is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace planwright {

// The number of bytes (1 to 4) of the code point at text[at], or 0 if the bytes there are not well-formed UTF-8.
// Overlong forms and surrogates are not well formed.
size_t CodePointLength(std::string_view text, size_t at);

// Whether the code point at text[at], of `length` bytes, is invisible but changes what a reader sees: control
// characters except tab, line feed and carriage return; zero-width characters; and bidirectional overrides.
bool IsHiddenControl(std::string_view text, size_t at, size_t length);

// `text` for a message, on one line: invalid bytes, control characters and line breaks are written as \xNN.
std::string Printable(std::string_view text);

// The same for text of several lines, such as what a program printed: line breaks and tabs stay. All that a terminal
// gets and that is not of Planwright's own words goes through one of these.
std::string PrintableLines(std::string_view text);

// Whether Printable leaves the text as it is.
bool IsPrintable(std::string_view text);

// Printable text in double quotes, cut to at most `limit` bytes of `text`.
std::string Quoted(std::string_view text, size_t limit = 60);

}  // namespace planwright
