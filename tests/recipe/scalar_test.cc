#include "planner/recipe/scalar.h"

#include <cmath>

#include "gtest/gtest.h"

namespace planwright {
namespace {

YamlNode Scalar(const std::string& written) {
  Diagnostics problems;
  const std::optional<YamlNode> map = ParseYaml("k: " + written, {}, problems);
  EXPECT_TRUE(map) << written;
  return map->entries[0].value;
}

// A scalar as written, and its value as an integer, a number, a boolean and text; - if it is not of that type.
struct ScalarForm {
  std::string written, integer, number, boolean, text;
};

TEST(Scalar, TypesOfWrittenForms) {
  const ScalarForm forms[] = {
      {"0", "0", "0.0", "-", "-"},
      {"-1", "-1", "-1.0", "-", "-"},
      {"9223372036854775807", "9223372036854775807", "9223372036854775808.0", "-", "-"},
      {"9223372036854775808", "-", "9223372036854775808.0", "-", "-"},
      {"+1", "-", "-", "-", "-"},
      {"010", "-", "-", "-", "-"},
      {"0o10", "-", "-", "-", "0o10"},
      {"0x10", "-", "-", "-", "0x10"},
      {"1_000", "-", "-", "-", "1_000"},
      {"1.0", "-", "1.0", "-", "-"},
      {"1e3", "-", "1000.0", "-", "-"},
      {"1.0e-8", "-", "0.00000001", "-", "-"},
      {"1.", "-", "-", "-", "1."},
      {".5", "-", "-", "-", ".5"},
      {"1e400", "-", "-", "-", "-"},
      {".inf", "-", "-", "-", ".inf"},
      {".nan", "-", "-", "-", ".nan"},
      {"nan", "-", "-", "-", "nan"},
      {"true", "-", "-", "1", "-"},
      {"false", "-", "-", "0", "-"},
      {"yes", "-", "-", "-", "yes"},
      {"off", "-", "-", "-", "off"},
      {"True", "-", "-", "-", "True"},
      {"\"true\"", "-", "-", "-", "true"},
      {"'5'", "-", "-", "-", "5"},
      {"4:00:00", "-", "-", "-", "4:00:00"},
      {"\"\"", "-", "-", "-", "-"},
      {"~", "-", "-", "-", "-"},
      {"[1]", "-", "-", "-", "-"},
  };
  for (const ScalarForm& form : forms) {
    const YamlNode node = Scalar(form.written);
    int64_t integer = 0;
    double number = 0;
    bool boolean = false;
    std::string text;
    EXPECT_EQ(ReadInteger(node, &integer, nullptr) ? std::to_string(integer) : "-", form.integer) << form.written;
    EXPECT_EQ(ReadNumber(node, &number, nullptr), form.number != "-") << form.written;
    if (form.number != "-") {
      EXPECT_EQ(number, std::stod(form.number)) << form.written;
    }
    EXPECT_EQ(ReadBool(node, &boolean, nullptr) ? std::to_string(boolean) : "-", form.boolean) << form.written;
    EXPECT_EQ(ReadString(node, &text, nullptr) ? text : "-", form.text) << form.written;
  }
}

TEST(Scalar, SaysHowToWriteAnInteger) {
  ScalarProblem problem;
  int64_t value = 0;
  EXPECT_FALSE(ReadInteger(Scalar("1_000_000"), &value, &problem));
  EXPECT_EQ(problem.help, "write 1000000");
  EXPECT_FALSE(ReadInteger(Scalar("1e6"), &value, &problem));
  EXPECT_EQ(problem.help, "write 1000000");
  EXPECT_FALSE(ReadInteger(Scalar("'8'"), &value, &problem));
  EXPECT_EQ(problem.help, "remove the quotes: a value in quotes is text");
  EXPECT_FALSE(ReadInteger(Scalar("9223372036854775808"), &value, &problem));
  EXPECT_EQ(problem.kind, DiagnosticKind::kOutOfRange);
}

TEST(Scalar, MinusZeroIsZero) {
  for (const char* written : {"-0", "-0.0", "-0e5"}) {
    double number = -1;
    ASSERT_TRUE(ReadNumber(Scalar(written), &number, nullptr)) << written;
    EXPECT_TRUE(number == 0 && !std::signbit(number)) << written;
  }
}

}  // namespace
}  // namespace planwright
