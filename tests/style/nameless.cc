// Two parametrised tests whose names say nothing. They never run: tests/support/test_main.cc refuses them, and
// style.test_names expects that.
#include <gtest/gtest.h>

namespace planwright::testing {
namespace {

struct Unprintable {
  int value;
};

class Indexed : public ::testing::TestWithParam<int> {};
TEST_P(Indexed, HasNoName) {}
INSTANTIATE_TEST_SUITE_P(Some, Indexed, ::testing::Values(7));

class Bytes : public ::testing::TestWithParam<Unprintable> {};
TEST_P(Bytes, HasAName) {}
INSTANTIATE_TEST_SUITE_P(Some, Bytes, ::testing::Values(Unprintable{7}), [](const auto&) { return "seven"; });

}  // namespace
}  // namespace planwright::testing
