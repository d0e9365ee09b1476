// LibTorch and glog in one process: warnings of the one are in the log of the other, and exceptions are thrown as
// before.
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "executor/log/log.h"
#include "executor/rank/open_logs.h"

namespace planwright::executor {
namespace {

using ::testing::ContainsRegex;

TEST(TorchWarnings, AreInTheLogAndOnStderr) {
  std::string folder = ::testing::TempDir() + "warningsXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_TRUE(OpenLog(folder, 5, [] { return absl::OkStatus(); }).ok());
  LogTorchWarnings();
  ::testing::internal::CaptureStderr();
  TORCH_WARN("this is strange: ", 17);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ContainsRegex("this is strange: 17"));
  std::ifstream file(folder + "/logs/rank0005.log");
  const std::string log{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(log, ContainsRegex("^W.* rank5 [0-9]+ torch_warnings_test\\.cc:[0-9]+\\] this is strange: 17\n"));
  std::filesystem::remove_all(folder);
}

// glog brings libunwind, which has the functions that throw exceptions, too. LibTorch was made for those of GCC.
TEST(TorchWarnings, ExceptionsAreThrownByTheLibraryOfTheCompiler) {
  for (const char* name : {"_Unwind_RaiseException", "_Unwind_Resume", "_Unwind_ForcedUnwind"}) {
    void* function = dlsym(RTLD_DEFAULT, name);
    ASSERT_NE(function, nullptr) << name;
    Dl_info where{};
    ASSERT_NE(dladdr(function, &where), 0);
    EXPECT_THAT(where.dli_fname, ::testing::HasSubstr("libgcc_s")) << name;
  }
}

}  // namespace
}  // namespace planwright::executor
