// Shapes of values with captures, and what is filled in.
#include "planner/recipe/shapes.h"

#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "planner/recipe/yaml/yaml_text.h"

namespace planwright {
namespace {

// What is meant by a value at a path of the table of keys; "-": it has not this shape.
std::string Meant(const std::string& path, const std::string& shape, const std::string& meant,
                  const std::string& value) {
  Captures captures;
  const YamlNode written = ShapeOf(value);
  if (!HasShape(ShapeOf(shape), written, path, captures)) return "-";
  captures[""].values = {written};
  const std::optional<YamlNode> filled = FilledIn(ShapeOf(meant), captures, {});
  return filled ? FlowText(*filled) : "twice";
}

TEST(Shapes, CaptureScalarsAndKinds) {
  EXPECT_EQ(Meant("", "$a", "{start: $a, end: $a}", "0.1"), "{start: 0.1, end: 0.1}");
  EXPECT_EQ(Meant("", "$a", "$a", "[0.1]"), "-");
  EXPECT_EQ(Meant("", "$a", "$a", "\"\""), "-") << "a scalar that is not empty";
  EXPECT_EQ(Meant("", "one|two", "three", "two"), "three");
  EXPECT_EQ(Meant("", "one|two", "three", "tw"), "-");
  EXPECT_EQ(Meant("", "$r(ranks)", "{first: $r.first, ranks: $r.count}", "4-7"), "{first: 4, ranks: 4}");
  EXPECT_EQ(Meant("", "$r(ranks)", "$r.first", "7-4"), "-");
  EXPECT_EQ(Meant("", "$t(duration)", "$t.time", "24h"), "\"24:00:00\"");
  EXPECT_EQ(Meant("", "$t(duration)", "$t.time", "90m"), "\"1:30:00\"");
  EXPECT_EQ(Meant("", "$t(duration)", "$t.time", "2D"), "\"2-00:00:00\"");
  for (const char* none : {"h", "0h", "-1h", "1.5h", "24", "[24h]", "99999999h"})
    EXPECT_EQ(Meant("", "$t(duration)", "$t.time", none), "-") << none;
  EXPECT_EQ(Meant("", "$p(numbers)", "$p.list", "(0.9, 0.95)"), "[0.9, 0.95]");
  EXPECT_EQ(Meant("", "$p(integers)", "$p.list", "32x32"), "[32, 32]");
  EXPECT_EQ(Meant("", "$p(integers)", "$p.list", "32x32x3"), "-");
}

TEST(Shapes, TheSameNameIsTheSameValue) {
  EXPECT_EQ(Meant("", "[$a, $a]", "$a", "[1, 1]"), "1");
  EXPECT_EQ(Meant("", "[$a, $a]", "$a", "[1, 2]"), "-");
  EXPECT_EQ(Meant("", "{a: $r.first, b: $r(ranks)}", "$r.count", "{a: 4, b: [4, 5]}"), "2");
  EXPECT_EQ(Meant("", "{a: $r.first, b: $r(ranks)}", "$r.count", "{a: 3, b: [4, 5]}"), "-");
}

TEST(Shapes, MapsHaveAllTheirKeysCaptured) {
  EXPECT_EQ(Meant("", "{a: $a}", "$a", "{a: 1, b: 2}"), "-");
  EXPECT_EQ(Meant("", "{a: $a, $rest}", "{b: $a, $rest}", "{c: 3, a: 1}"), "{b: 1, c: 3}");
  EXPECT_EQ(Meant("", "{a: $a, $rest}", "{$rest, c: $a}", "{c: 3, a: 1}"), "twice") << "what is there is not lost";
  EXPECT_EQ(Meant("", "{a: $a, $rest}", "{c: 1, $rest}", "{c: 3, a: 1}"), "{c: 3}") << "what is captured wins";
  EXPECT_EQ(Meant("bridges", "{$from: $to}", "[{from: $from, to: $to}]", "{vision: language}"),
            "[{from: vision, to: language}]");
  EXPECT_EQ(Meant("bridges", "{$from: $to}", "$to", "{from: vision}"), "-") << "a key of bridges is no name";
  EXPECT_EQ(Meant("evaluation", "{$set(evaluation.sets), $rest}", "{$rest, sets: [{$set}]}",
                  "{samples: 16, every_samples: 8, seed: 7}"),
            "{every_samples: 8, sets: [{samples: 16, seed: 7}]}");
  EXPECT_EQ(Meant("evaluation", "{$set(evaluation.sets), $rest}", "$", "{every_samples: 8}"), "-") << "at least one";
  EXPECT_EQ(Meant("data", "{kind: x, $others(-), $rest}", "{$rest}", "{kind: x, seed: 1, folder: f}"), "{seed: 1}");
}

TEST(Shapes, RepeatItemsAndKeys) {
  EXPECT_EQ(
      Meant("modules", "[{name: $name, $rest}, ...]", "{$name: {$rest}, ...}", "[{name: a, tp: 1}, {tp: 2, name: b}]"),
      "{a: {tp: 1}, b: {tp: 2}}");
  EXPECT_EQ(Meant("modules", "[{name: $name, $rest}, ...]", "{$name: {$rest}, ...}", "[{name: a}, {name: a}]"),
            "twice");
  EXPECT_EQ(Meant("modules", "[{name: $name, $rest}, ...]", "$", "[{name: a}, {tp: 2}]"), "-");
  EXPECT_EQ(Meant("modules", "[{name: $name, $rest}, ...]", "$", "[]"), "-") << "one or more";
  EXPECT_EQ(Meant("", "{$name: {b: $b}, ..., $rest}", "[{name: $name, b: $b}, ...]", "{x: {b: 1}, y: {b: 2}}"),
            "[{name: x, b: 1}, {name: y, b: 2}]");
  EXPECT_EQ(Meant("", "[$letter(letter), ...]", "\"$letter...\"", "[M, \"-\", M]"), "\"M-M\"");
  EXPECT_EQ(Meant("", "[$name, ...]", "\"$name,...\"", "[a, b]"), "\"a,b\"");
  EXPECT_EQ(Meant("", "[{$keys}, ...]", "{$keys, ...}", "[{a: 1}, {b: 2}]"), "{a: 1, b: 2}");
}

}  // namespace
}  // namespace planwright
