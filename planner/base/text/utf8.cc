#include "planner/base/text/utf8.h"

#include "absl/strings/str_format.h"
#include "planner/base/text/text.h"

namespace planwright {
namespace {

unsigned char Byte(std::string_view text, size_t at) {
  return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
}

bool IsContinuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

// The ranges are those of table 3-7 of the Unicode standard: the first byte decides the length, and E0, ED, F0 and F4
// restrict the second byte (no overlong forms, no surrogates, nothing above U+10FFFF).
size_t CodePointLength(std::string_view text, size_t at) {
  const unsigned char a = Byte(text, at), b = Byte(text, at + 1), c = Byte(text, at + 2), d = Byte(text, at + 3);
  if (a < 0x80) return 1;
  if (a >= 0xC2 && a <= 0xDF) return IsContinuation(b) ? 2 : 0;
  if (a >= 0xE0 && a <= 0xEF) {
    if (!IsContinuation(b) || !IsContinuation(c)) return 0;
    if ((a == 0xE0 && b < 0xA0) || (a == 0xED && b > 0x9F)) return 0;
    return 3;
  }
  if (a >= 0xF0 && a <= 0xF4) {
    if (!IsContinuation(b) || !IsContinuation(c) || !IsContinuation(d)) return 0;
    if ((a == 0xF0 && b < 0x90) || (a == 0xF4 && b > 0x8F)) return 0;
    return 4;
  }
  return 0;
}

bool IsHiddenControl(std::string_view text, size_t at, size_t length) {
  const unsigned char a = Byte(text, at), b = Byte(text, at + 1), c = Byte(text, at + 2);
  if (length == 1) return (a < 0x20 && a != '\t' && a != '\n' && a != '\r') || a == 0x7F;
  if (length == 2) return a == 0xC2 && b < 0xA0;  // C1 controls
  // U+200B to U+200F and U+202A to U+202E: zero width, and direction of writing
  if (length == 3 && a == 0xE2 && b == 0x80) return (c >= 0xAA && c <= 0xAE) || (c >= 0x8B && c <= 0x8F);
  // U+2066 to U+2069: isolates of direction
  return length == 3 && a == 0xE2 && b == 0x81 && c >= 0xA6 && c <= 0xA9;
}

namespace {

bool IsPlain(std::string_view text, size_t at, size_t length) {
  return !IsHiddenControl(text, at, length) && text[at] != '\n' && text[at] != '\r' && text[at] != '\t';
}

// Each byte of a character that is not plain is escaped by itself, so that invalid UTF-8 can be shown too. `kept`:
// characters that stay though they are not plain.
std::string Escaped(std::string_view text, std::string_view kept) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = CodePointLength(text, at);
    const bool plain = length > 0 && (IsPlain(text, at, length) || kept.find(text[at]) != std::string_view::npos);
    const size_t bytes = length > 0 ? length : 1;
    for (size_t i = at; i < at + bytes; ++i) {
      if (plain) {
        result += text[i];
      } else {
        absl::StrAppendFormat(&result, "\\x%02x", Byte(text, i));
      }
    }
    at += bytes;
  }
  return result;
}

}  // namespace

std::string Printable(std::string_view text) { return Escaped(text, ""); }
std::string PrintableLines(std::string_view text) { return Escaped(text, "\n\t"); }

bool IsPrintable(std::string_view text) {
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    length = CodePointLength(text, at);
    if (length == 0 || !IsPlain(text, at, length)) return false;
  }
  return true;
}

std::string Quoted(std::string_view text, size_t limit) {
  if (text.size() <= limit) return Cat("\"", Printable(text), "\"");
  size_t cut = limit;  // back to the start of a code point
  while (cut > 0 && IsContinuation(Byte(text, cut))) --cut;
  return Cat("\"", Printable(text.substr(0, cut)), "...\"");
}

}  // namespace planwright
