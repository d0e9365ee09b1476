// Tables, wrapped lines and long numbers, character by character.
#include "planner/base/paper/table.h"

#include <gtest/gtest.h>

namespace planwright {
namespace {

TEST(Table, AlignsNumbersRightAndWordsLeft) {
  Table table({"name", "count"});
  table.Add({"tp", "8"});
  table.Add({"größe", "1,024"});
  EXPECT_EQ(table.Text("> "), "> name   count\n> tp         8\n> größe  1,024\n");
}

TEST(Table, WrapsTheWordsOfItsLastColumnWhereTheyDoNotFit) {
  Table table({"name", "members"});
  table.Add({"tp", "[0-1] [2-3] [4-5] [6-7] [8-9] [10-11] [12-13]"});
  EXPECT_EQ(table.Text("", 32), "name  members\ntp    [0-1] [2-3] [4-5] [6-7]\n      [8-9] [10-11] [12-13]\n");
  EXPECT_EQ(table.Text("", 60), table.Text());
}

TEST(Table, IsCutIntoPiecesThatBeginWithTheFirstColumn) {
  Table table({"role", "gradients", "optimizer", "workspace"});
  table.Add({"a.s0", "19.27 GB", "1.48 GB", "4.16 GB"});
  EXPECT_EQ(table.Text("", 30),
            "role  gradients  optimizer\na.s0  19.27 GB   1.48 GB\n\nrole  workspace\na.s0  4.16 GB\n");
}

TEST(Wrapped, BreaksAtSpacesAndKeepsTheIndent) {
  EXPECT_EQ(Wrapped("  one two  three", 9, 4), "  one two\n    three");
  EXPECT_EQ(Wrapped("incomprehensible words", 6), "incomprehensible\nwords");
  EXPECT_EQ(Wrapped("", 6), "");
}

TEST(WithCommas, GroupsByThree) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(11515677504), "11,515,677,504");
  EXPECT_EQ(WithCommas(-123456), "-123,456");
}

}  // namespace
}  // namespace planwright
