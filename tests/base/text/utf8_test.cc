#include "planner/base/text/utf8.h"

#include "gtest/gtest.h"

namespace planwright {
namespace {

TEST(Utf8, WellFormedAndNot) {
  EXPECT_EQ(CodePointLength("a", 0), 1u);
  EXPECT_EQ(CodePointLength("\xC3\xA9", 0), 2u);
  EXPECT_EQ(CodePointLength("\xE2\x82\xAC", 0), 3u);
  EXPECT_EQ(CodePointLength("\xF0\x9F\x98\x80", 0), 4u);
  EXPECT_EQ(CodePointLength("\xC0\xAF", 0), 0u);          // overlong
  EXPECT_EQ(CodePointLength("\xED\xA0\x80", 0), 0u);      // surrogate
  EXPECT_EQ(CodePointLength("\xF4\x90\x80\x80", 0), 0u);  // beyond Unicode
  EXPECT_EQ(CodePointLength("\xE2\x82", 0), 0u);          // cut short
  EXPECT_EQ(CodePointLength("\x80", 0), 0u);
}

TEST(Utf8, HiddenControls) {
  EXPECT_TRUE(IsHiddenControl("\x1b", 0, 1));
  EXPECT_TRUE(IsHiddenControl("\xE2\x80\xAE", 0, 3));  // right-to-left override
  EXPECT_TRUE(IsHiddenControl("\xE2\x80\x8B", 0, 3));  // zero-width space
  EXPECT_FALSE(IsHiddenControl("\n", 0, 1));
  EXPECT_FALSE(IsHiddenControl("\xE2\x80\x94", 0, 3));  // a dash
}

TEST(Utf8, QuotedCutsAtACodePoint) {
  EXPECT_EQ(Quoted("abc"), "\"abc\"");
  EXPECT_EQ(Quoted("ab\xC3\xA9", 3), "\"ab...\"");
  EXPECT_EQ(Printable("a\nb\x01"), "a\\x0ab\\x01");
}

TEST(Utf8, LinesKeepTheirBreaksAndNothingElse) {
  EXPECT_EQ(PrintableLines("a\n\tb\r\x1b[31m\xff\xE2\x80\xAE"), "a\n\tb\\x0d\\x1b[31m\\xff\\xe2\\x80\\xae");
  for (const char* text : {"a b", "", "\xC3\xA9"}) EXPECT_TRUE(IsPrintable(text)) << text;
  for (const char* text : {"\x1b", "a\n", "\t", "\x7f", "\xC2\x9B", "\xff", "\xE2\x80\x8B"})
    EXPECT_FALSE(IsPrintable(text)) << Printable(text);
}

}  // namespace
}  // namespace planwright
