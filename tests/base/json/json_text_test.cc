// Texts of JSON that come from anywhere: what is refused, where, and with how much memory.
#include "planner/base/json/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "tests/support/folders.h"

// What `new` gave out and did not get back, and the most of it since it was set to zero.
namespace {
size_t held = 0, most_held = 0;
}  // namespace

void* operator new(size_t bytes) {
  auto* block = static_cast<size_t*>(std::malloc(bytes + alignof(std::max_align_t)));
  if (block == nullptr) throw std::bad_alloc();
  *block = bytes;
  held += bytes;
  most_held = std::max(most_held, held);
  return reinterpret_cast<char*>(block) + alignof(std::max_align_t);
}
void operator delete(void* pointer) noexcept {
  if (pointer == nullptr) return;
  auto* block = reinterpret_cast<size_t*>(static_cast<char*>(pointer) - alignof(std::max_align_t));
  held -= *block;
  std::free(block);
}
void operator delete(void* pointer, size_t) noexcept { operator delete(pointer); }

namespace planwright {
namespace {

using ::testing::HasSubstr;

constexpr JsonLimits kSmall = {"test", 100, 6, 3, 2};

std::string Refusal(const std::string& text, const JsonLimits& limits = kSmall) {
  const absl::Status status = ParseJson(text, limits).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
  EXPECT_EQ(ParseOrderedJson(text, limits).status(), status);
  return std::string(status.message());
}

TEST(JsonText, EachLimitIsNamedAndExact) {
  EXPECT_TRUE(ParseJson("[[[1]]]", kSmall).ok());
  EXPECT_EQ(Refusal("[[[[]]]]"), "more than 3 levels of objects and lists");
  EXPECT_TRUE(ParseJson("[1,2,3,4,5]", kSmall).ok());
  EXPECT_EQ(Refusal("[1,2,3,4,5,6]"), "more than 6 values");
  EXPECT_TRUE(ParseJson(R"({"a":1,"b":2})", kSmall).ok());
  EXPECT_EQ(Refusal(R"({"a":1,"b":2,"c":3})"), "an object of more than 2 fields");
  EXPECT_TRUE(ParseJson("1" + std::string(99, ' '), kSmall).ok());
  EXPECT_EQ(Refusal("1" + std::string(100, ' ')), "it has more than 100 bytes");
}

TEST(JsonText, AFieldTwiceIsRefusedAndShownSafely) {
  EXPECT_EQ(Refusal("{\"\\u001b[31m\":1,\"\\u001b[31m\":2}"), "the field \"\\x1b[31m\" is given twice");
  EXPECT_THAT(Refusal("{\"a\":\x1b}"), ::testing::Not(HasSubstr("\x1b")));
}

TEST(JsonText, TheTreeIsThatOfTheText) {
  const std::string text = R"({"b":[1,-2,2.5,null,true],"a":"x"})";
  EXPECT_EQ(ParseJson(text, kAgentLineJson)->dump(), nlohmann::json::parse(text).dump());
  EXPECT_EQ(ParseOrderedJson(text, kAgentLineJson)->dump(), text);
}

// Megabytes of nested text, of each kind that makes the largest tree, cost about what the first refused value costs.
TEST(JsonText, AHostileTextCostsNoMemory) {
  for (const JsonLimits* limits : kAllJsonLimits) {
    if (limits->values > 1 << 16) continue;
    const size_t bytes = std::min<size_t>(limits->bytes, 7 << 20);
    std::string lists(bytes / 2, '['), wide = "[", objects;
    while (wide.size() + 4 < bytes) wide += "{},";
    wide += "{}]";
    while (objects.size() + 5 < bytes) objects += "{\"\":";
    for (const std::string& text : {lists, wide, objects, lists + std::string(bytes / 2, ']')}) {
      most_held = held;
      const size_t before = held;
      const bool good = ParseJson(text, *limits).ok();
      // A value takes a node of 16 bytes and at most one block of its own.
      EXPECT_LE(most_held - before, limits->values * 200 + 4096) << limits->what << ", " << text.substr(0, 4);
      EXPECT_TRUE(!good || text == wide) << limits->what;
    }
  }
}

TEST(JsonText, AnyBytesAreATreeOrAnError) {
  std::mt19937 random(5);
  const std::string start = R"({"kind":"event","rank":3,"text":"\u00e9\n","list":[[1,2],{"a":null}]})";
  int trees = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string text = start;
    for (int i = 0; i < 2; ++i) text[random() % text.size()] = static_cast<char>(random());
    trees += ParseJson(text, kAgentLineJson).ok();
  }
  EXPECT_GT(trees, 0);
  EXPECT_LT(trees, 50000);
}

// docs/limits.md has each row.
TEST(JsonText, ThePageHasTheLimits) {
  std::ifstream file(InSource("docs/limits.md"));
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  const auto number = [](size_t value) {
    std::string text = std::to_string(value);
    for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) text.insert(at, ",");
    return text;
  };
  for (const JsonLimits* limits : kAllJsonLimits) {
    EXPECT_THAT(page, HasSubstr("| " + std::string(limits->what) + " | " + number(limits->bytes) + " | " +
                                number(limits->values) + " | " + number(limits->depth) + " | " +
                                number(limits->fields) + " |\n"));
  }
}

}  // namespace
}  // namespace planwright
