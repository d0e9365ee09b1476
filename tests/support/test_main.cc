// The main() of every GoogleTest binary: names of parametrised tests are words, testing::TempDir() is a folder of this
// process alone, as ctest runs the tests of a binary side by side, and a binary all of whose tests were skipped ends
// with 77, which ctest calls skipped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace {

constexpr int kSkipped = 77;

// "Suite/Test.Does/3": the number is the index of a parameter, for which no name was given.
bool EndsWithIndex(std::string_view name) {
  const size_t slash = name.rfind('/');
  if (slash == name.npos) return false;
  const std::string_view last = name.substr(slash + 1);
  return std::all_of(last.begin(), last.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

// How many parametrised tests a reader could not tell apart. Each is printed.
int NamelessTests(const testing::UnitTest& tests) {
  int nameless = 0;
  for (int s = 0; s < tests.total_test_suite_count(); ++s) {
    const testing::TestSuite& suite = *tests.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const testing::TestInfo& test = *suite.GetTestInfo(t);
      if (test.value_param() == nullptr) continue;
      const auto refuse = [&](const char* what, const char* mend) {
        std::fprintf(stderr, "%s:%d: %s.%s: %s; %s\n", test.file(), test.line(), suite.name(), test.name(), what, mend);
        ++nameless;
      };
      if (EndsWithIndex(test.name()))
        refuse("a number is no name", "give INSTANTIATE_TEST_SUITE_P a function that names a parameter");
      if (std::string_view(test.value_param()).find("-byte object <") != std::string_view::npos)
        refuse("its parameter is printed as bytes", "give the parameter's type a PrintTo");
    }
  }
  return nameless;
}

// Removes itself with all that tests left in it. A test that ends the process leaves it there.
class OwnFolder {
 public:
  OwnFolder() : path_(testing::TempDir() + "test_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
    if (!path_.empty()) setenv("TEST_TMPDIR", path_.c_str(), 1);
  }
  ~OwnFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

 private:
  std::string path_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  if (NamelessTests(tests) > 0) return 2;
  const OwnFolder folder;
  if (const int failed = RUN_ALL_TESTS(); failed != 0) return failed;
  const int skipped = tests.skipped_test_count();
  return skipped > 0 && skipped == tests.test_to_run_count() ? kSkipped : 0;
}
